package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestValuesAreReadWholeAndNoFurther(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"a status":                             "+OK\r\n",
		"an error":                             "-ERR no\r\n",
		"a long error":                         "-ERR " + strings.Repeat("x", 9000) + "\r\n",
		"a number":                             ":42\r\n",
		"a bulk with line breaks":              "$6\r\na\r\nb\r\n\r\n",
		"an empty bulk":                        "$0\r\n\r\n",
		"no bulk":                              "$-1\r\n",
		"no list":                              "*-1\r\n",
		"an empty list":                        "*0\r\n",
		"lists in a list":                      "*3\r\n*2\r\n:1\r\n$1\r\na\r\n*0\r\n$-1\r\n",
		"a map of version 3":                   "%1\r\n$1\r\na\r\n:1\r\n",
		"a set and what is special":            "~4\r\n_\r\n#t\r\n,1.5\r\n(123\r\n",
		"a text with its format":               "=8\r\ntxt:abcd\r\n",
		"an attribute belongs to what follows": "|1\r\n+k\r\n+v\r\n:1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := bufio.NewReaderSize(strings.NewReader(raw+"+next\r\n"), 4096)
			got, err := readValue(r)
			if err != nil || string(got) != raw {
				t.Fatalf("readValue = %q, %v", got, err)
			}
			if rest, _ := io.ReadAll(r); string(rest) != "+next\r\n" {
				t.Errorf("%q is left", rest)
			}
		})
	}
}

func TestWhatIsNoRESPIsRefused(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"another protocol":     "HTTP/1.1 200 OK\r\n",
		"a bulk without end":   "$999999999999\r\n",
		"a list without end":   "*99999999\r\n",
		"a length of no digit": "$x\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := readValue(bufio.NewReader(strings.NewReader(raw))); !errors.Is(err, errNotRESP) {
				t.Errorf("readValue = %q, %v", got, err)
			}
		})
	}
	if _, err := readValue(bufio.NewReader(strings.NewReader("$5\r\nab"))); err == nil {
		t.Error("half a bulk was taken for a whole one")
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw  string
		most int
		want []string
	}{
		"all of a list":         {"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n", 9, []string{"GET", "a\r\nb"}},
		"the first ones":        {"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n", 2, []string{"SET", "a"}},
		"a line":                {"PING  hello\r\n", 9, []string{"PING", "hello"}},
		"the start of a line":   {"PING hello\r\n", 1, []string{"PING"}},
		"an empty line":         {"\r\n", 9, nil},
		"an empty list":         {"*0\r\n", 9, nil},
		"what is cut off stops": {"*2\r\n$3\r\nGET\r\n$9\r\na", 9, []string{"GET"}},
		"a number among them":   {"*2\r\n$3\r\nGET\r\n:1\r\n", 9, []string{"GET"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := words([]byte(tt.raw), tt.most); !slices.Equal(got, tt.want) {
				t.Errorf("words = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestGist(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"*2\r\n$5\r\nSTALE\r\n$1\r\n1\r\n": "STALE",
		"*1\r\n*1\r\n:7\r\n":               "7",
		"-NOSCRIPT No\r\n":                 "error: NOSCRIPT No",
		"+OK\r\n":                          "OK",
		"$-1\r\n":                          "-1",
		"*-1\r\n":                          "-1",
	} {
		if got := gist([]byte(raw)); got != want {
			t.Errorf("gist(%q) = %q, want %q", raw, got, want)
		}
	}
}

func FuzzRESP(f *testing.F) {
	for _, s := range []string{"*1\r\n$4\r\nPING\r\n", "$-1\r\n", "PING\r\n", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "%1\r\n+a\r\n:1\r\n", "*-1\r\n", "|1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if raw, err := readCommand(bufio.NewReader(bytes.NewReader(text))); err == nil {
			if !bytes.HasPrefix(text, raw) {
				t.Errorf("read %q out of %q", raw, text)
			}
			NewNames(nil).parse(raw)
			words(raw, 1000)
		}
		if raw, err := readValue(bufio.NewReader(bytes.NewReader(text))); err == nil {
			if !bytes.HasPrefix(text, raw) {
				t.Errorf("read %q out of %q", raw, text)
			}
			gist(raw)
		}
	})
}
