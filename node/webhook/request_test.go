package webhook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPayloadIsReadStrictly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ payload, want string }{
		"the url is all that is needed":         {`{"url":"http://a/"}`, ""},
		"white space is free":                   {" {\n\"url\" :\t\"http://a/\" } ", ""},
		"everything at once":                    {`{"url":"http://a/","method":"PUT","headers":{"X-A":"b"},"body":{},"timeout_ms":1}`, ""},
		"the body may be null":                  {`{"url":"http://a/","body":null}`, ""},
		"a pair of surrogates is one character": {`{"url":"http://a/","body_text":"\ud83d\ude00"}`, ""},
		"an escaped backslash begins no escape": {`{"url":"http://a/","body_text":"\\ud83d"}`, ""},
		"unknown field":                         {`{"url":"http://a/","retries":3}`, `unknown field "retries"`},
		"field in another case":                 {`{"URL":"http://a/"}`, `unknown field "URL"`},
		"doubled field":                         {`{"url":"http://a/","url":"http://b/"}`, `field "url" is given twice`},
		"two bodies":                            {`{"url":"http://a/","body":1,"body_text":""}`, "body and body_text: give one of them"},
		"three bodies":                          {`{"url":"http://a/","body":1,"body_text":"","body_base64":""}`, "give one of them"},
		"an array":                              {`["http://a/"]`, "must be a JSON object"},
		"null":                                  {`null`, "must be a JSON object"},
		"a string":                              {`"http://a/"`, "must be a JSON object"},
		"url of another type":                   {`{"url":7}`, "url: must be a string, not 7"},
		"url null":                              {`{"url":null}`, "url: must be a string, not null"},
		"headers as a list":                     {`{"headers":["a"]}`, "headers: must be a JSON object"},
		"header value of another type":          {`{"headers":{"X-A":1}}`, `headers: "X-A": must be a string, not 1`},
		"doubled header":                        {`{"headers":{"X-A":"1","X-A":"2"}}`, `headers: field "X-A" is given twice`},
		"time-out as a fraction":                {`{"timeout_ms":1.5}`, "timeout_ms: must be a whole number of milliseconds, not 1.5"},
		"time-out as text":                      {`{"timeout_ms":"5s"}`, "timeout_ms: must be a whole number"},
		"time-out beyond 64 bits":               {`{"timeout_ms":99999999999999999999}`, "timeout_ms: must be a whole number"},
		"time-out zero":                         {`{"timeout_ms":0}`, "timeout_ms: 0 must be 1 to 600000 milliseconds"},
		"time-out negative":                     {`{"timeout_ms":-5}`, "timeout_ms: -5 must be 1 to 600000"},
		"time-out above the limit":              {`{"timeout_ms":600001}`, "timeout_ms: 600001 must be 1 to 600000"},
		"base64 without padding":                {`{"body_base64":"YQ"}`, "body_base64: must be standard base64 with padding"},
		"base64 for URLs":                       {`{"body_base64":"_-8="}`, "body_base64: must be standard base64"},
		"base64 with stray bits":                {`{"body_base64":"YR=="}`, "body_base64: must be standard base64"},
		"half of a surrogate pair":              {`{"body_text":"\ud83d"}`, "body_text: must not contain half of a surrogate pair"},
		"the other half":                        {`{"body_text":"\ude00"}`, "half of a surrogate pair"},
		"half of a pair and a common escape":    {`{"body_text":"\ud83d\u0041"}`, "half of a surrogate pair"},
		"half of a pair and a line break":       {`{"body_text":"\ud83d\n"}`, "half of a surrogate pair"},
		"text that is no UTF-8":                 {"{\"body_text\":\"\xff\"}", "body_text: must be UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Request
			checkFault(t, json.Unmarshal([]byte(tt.payload), &r), tt.want)
		})
	}
}

func TestPayloadThatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"", " ", "{", `{"url"`, `{"url":}`, `{"url":"a"`, `{"url":"a",}`, `{"url":"a"} {}`, `{"url":"a"}x`, `{url:"a"}`, "\xff", "\ufeff{}"} {
		var r Request
		if err := r.UnmarshalJSON([]byte(payload)); err == nil {
			t.Errorf("%q was read as %+v", payload, r)
		}
	}
}

func TestRequestIsCheckedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	with := func(name, value string) Request {
		return Request{URL: "http://a/", Headers: map[string]string{name: value}}
	}
	to := func(url string) Request { return Request{URL: url} }
	for name, tt := range map[string]struct {
		request Request
		want    string
	}{
		"http":                         {to("http://a/"), ""},
		"https with port and query":    {to("https://a.example:8443/b?c=d#e"), ""},
		"no url":                       {to(""), "url: is missing"},
		"url without scheme":           {to("example.com/hook"), `url: scheme "": must be http or https`},
		"file":                         {to("file:///etc/passwd"), `url: scheme "file"`},
		"gopher":                       {to("gopher://a/"), `url: scheme "gopher"`},
		"opaque":                       {to("http:a"), "url: has no host"},
		"no host":                      {to("http:///a"), "url: has no host"},
		"only a port":                  {to("http://:80/"), "url: has no host"},
		"user":                         {to("http://me@a/"), "url: must not contain a user or password"},
		"port zero":                    {to("http://a:0/"), `url: port "0": must be 1 to 65535`},
		"port too high":                {to("http://a:65536/"), `url: port "65536"`},
		"port in letters":              {to("http://a:http/"), "url: cannot be read"},
		"line break in the url":        {to("http://a/\r\nX: y"), "url: cannot be read"},
		"broken percent":               {to("http://a/%zz"), "url: cannot be read"},
		"method in lower case":         {Request{URL: "http://a/", Method: "post"}, `method "post": must be one of DELETE, GET`},
		"method CONNECT":               {Request{URL: "http://a/", Method: "CONNECT"}, `method "CONNECT"`},
		"header name with space":       {with("X A", "b"), `headers: name "X A": must consist of`},
		"header name empty":            {with("", "b"), `headers: name "": must consist of`},
		"header name with line break":  {with("X\r\nY", "b"), "headers: name"},
		"header name with umlaut":      {with("Ü", "b"), "headers: name"},
		"header value with line break": {with("X", "a\r\nY: b"), "headers: X: must not contain line breaks"},
		"header value with NUL":        {with("X", "\x00"), "headers: X: must not contain"},
		"header value with tab":        {with("X", "a\tb"), ""},
		"Host":                         {with("host", "b"), "headers: Host: must not be given, it is taken from the url"},
		"Content-Length":               {with("content-length", "1"), "headers: Content-Length: it belongs to the connection"},
		"Transfer-Encoding":            {with("Transfer-Encoding", "chunked"), "belongs to the connection"},
		"Connection":                   {with("Connection", "X-A"), "belongs to the connection"},
		"Proxy-Authorization":          {with("Proxy-Authorization", "x"), "belongs to the connection"},
		"the id is ours":               {with("webhook-id", "x"), "headers: Webhook-Id: must not be given, Kelpie sets it"},
		"the signature is ours":        {with("WEBHOOK-SIGNATURE", "x"), "Webhook-Signature: must not be given"},
		"one header in two spellings":  {Request{URL: "http://a/", Headers: map[string]string{"X-a": "1", "x-A": "2"}}, "headers: X-A is given twice"},
		"headers beyond the limit":     {with("X", strings.Repeat("a", maxHeaderBytes)), "headers: must be at most 32768 bytes"},
		"two bodies from Go":           {Request{URL: "http://a/", Body: json.RawMessage("1"), BodyText: "1"}, "give one of them"},
		"a body that is no JSON":       {Request{URL: "http://a/", Body: json.RawMessage("{")}, "body: must be JSON"},
		"a negative time-out":          {Request{URL: "http://a/", TimeoutMS: -1}, "timeout_ms: -1 must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFault(t, tt.request.Check(), tt.want)
			if tt.want == "" {
				return
			}
			if v := try(t, handler(t, Options{}), tt.request); v.fate != hopeless {
				t.Errorf("fate %v, want hopeless: %v", v.fate, v.err)
			}
		})
	}
}

func TestFaultNeverRepeatsAPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://me:geheim@a/", "http://me:geheim@a:http/", "ftp://me:geheim@a/"} {
		if err := (Request{URL: url}).Check(); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// spaced is JSON that any encoder would change.
const spaced = "{ \"b\" : 1.0,\t\"a\":[ 1e400, 12345678901234567890123 ],\n\"html\":\"<&>\\u003c\\/\", \"a\":\"\u2028\\ud800\" }"

func TestBodyKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"spaces, order, doubles, escapes": spaced,
		"a number alone":                  "1.50",
		"null":                            "null",
		"bytes that are no UTF-8":         "\"\xff\xfe\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload := []byte(" {\"body\" : " + body + " , \"url\":\"http://a/\"}")
			decoded, err := Kind.Decode(payload)
			if err != nil {
				t.Fatal(err)
			}
			if string(decoded.Body) != body {
				t.Errorf("body %q, want %q", decoded.Body, body)
			}
			again, err := decoded.Payload()
			if err != nil {
				t.Fatal(err)
			}
			if twice, err := Kind.Decode(again); err != nil || string(twice.Body) != body {
				t.Errorf("by Payload %q, want %q: %v", twice.Body, body, err)
			}
		})
	}
}

func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		`{"url":"http://a/"}`, `{"url":"http://a/","body":` + spaced + `}`, `{"body_text":"\ud83d\ude00"}`, `{"body_text":"\ud83d`,
		`{"headers":{"A":"b"},"body_base64":"YQ==","timeout_ms":5}`, `{"url":"http://[::1%25lo]:80/"}`, "null", "{", "\"\\u", `{"a":{"a":`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := Kind.Decode(payload)
		if err != nil {
			return
		}
		if len(r.Body) > 0 && !bytes.Contains(payload, r.Body) {
			t.Errorf("body %q is not in %q", r.Body, payload)
		}
		if !utf8.ValidString(r.BodyText) {
			t.Errorf("text %q is not UTF-8", r.BodyText)
		}
		again, err := r.Payload() // nothing that was accepted may panic or change
		if err != nil {
			return
		}
		twice, err := Kind.Decode(again)
		if err != nil || string(twice.Body) != string(r.Body) || twice.BodyText != r.BodyText || twice.URL != r.URL {
			t.Errorf("%q became %q: %v", payload, again, err)
		}
	})
}

func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("refused with %q, want %q", err, want)
	}
}
