package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of the headers in a payload.
const (
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10
)

var methods = []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

// ownHeaders cannot be chosen: the connection's own (a request could be smuggled
// or misrouted with them), and the ones a receiver trusts.
var ownHeaders = map[string]string{
	"Connection": "", "Content-Length": "", "Expect": "", "Http2-Settings": "", "Keep-Alive": "",
	"Proxy-Authenticate": "", "Proxy-Authorization": "", "Proxy-Connection": "", "Te": "", "Trailer": "",
	"Transfer-Encoding": "", "Upgrade": "",
	"Host":     "it is taken from the url",
	headerID:   "Kelpie sets it",
	headerTime: "Kelpie sets it",
	headerSig:  "Kelpie sets it",
}

// plan is a checked Request: nothing in it can be wrong any more but the world.
type plan struct {
	method  string
	url     *url.URL
	host    string // host:port in lower case, whose load is bounded
	header  http.Header
	body    []byte
	timeout time.Duration
}

func (r Request) plan() (p plan, err error) {
	p.method = r.Method
	if p.method == "" {
		p.method = http.MethodPost
	}
	if !slices.Contains(methods, p.method) {
		return p, fmt.Errorf("method %q: must be one of %s", clip(r.Method, 100), strings.Join(methods, ", "))
	}
	if p.url, err = parseTarget(r.URL); err != nil {
		return p, fmt.Errorf("url: %w", err)
	}
	p.host = hostPort(p.url)
	if p.header, err = parseHeaders(r.Headers); err != nil {
		return p, fmt.Errorf("headers: %w", err)
	}
	contentType, err := "", error(nil)
	if p.body, contentType, err = r.content(); err != nil {
		return p, err
	}
	if _, chosen := p.header["Content-Type"]; !chosen && contentType != "" {
		p.header.Set("Content-Type", contentType)
	}
	ms := r.TimeoutMS
	if ms == 0 {
		ms = defaultTimeoutMS
	}
	if err := checkTimeout(ms); err != nil {
		return p, fmt.Errorf("timeout_ms: %w", err)
	}
	p.timeout = time.Duration(ms) * time.Millisecond
	return p, nil
}

// content returns the one body and its default type; none for an empty body.
func (r Request) content() (body []byte, contentType string, err error) {
	set := 0
	if len(r.Body) > 0 {
		set++
		body, contentType = r.Body, "application/json"
		if !json.Valid(body) {
			return nil, "", errors.New("body: must be JSON; anything else travels as body_text or body_base64")
		}
	}
	if r.BodyText != "" {
		set++
		body, contentType = []byte(r.BodyText), "text/plain; charset=utf-8"
	}
	if len(r.BodyBase64) > 0 {
		set++
		body, contentType = r.BodyBase64, "application/octet-stream"
	}
	if set > 1 {
		return nil, "", errors.New("body, body_text, body_base64: give one of them")
	}
	return body, contentType, nil
}

// parseTarget returns where to send. Its errors never repeat the URL, which may
// hold a password.
func parseTarget(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("is missing")
	}
	u, err := url.Parse(raw)
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err
		}
		return nil, fmt.Errorf("cannot be read: %s", clip(err.Error(), 200))
	}
	switch port := u.Port(); {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q: must be http or https", clip(u.Scheme, 20))
	case u.User != nil:
		return nil, errors.New("must not contain a user or password; an Authorization header can")
	case u.Hostname() == "":
		return nil, errors.New("has no host")
	case isNumber(u.Hostname()):
		return nil, fmt.Errorf("host %q: an IPv4 address is written as four decimal numbers", clip(u.Hostname(), 100))
	case port != "":
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("port %q: must be 1 to 65535", clip(port, 20))
		}
	}
	return u, nil
}

// isNumber tells if some resolver may take host for an IPv4 address although it
// is not spelt like one: its last label is a decimal, octal or hex number.
func isNumber(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	label := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), port)
}

func parseHeaders(headers map[string]string) (http.Header, error) {
	if len(headers) > maxHeaders {
		return nil, fmt.Errorf("%d of them: must be at most %d", len(headers), maxHeaders)
	}
	parsed, size := http.Header{}, 0
	for _, name := range slices.Sorted(maps.Keys(headers)) { // sorted: the same fault gives the same sentence
		value, key := headers[name], http.CanonicalHeaderKey(name)
		why, own := ownHeaders[key]
		switch size += len(name) + len(value); {
		case !isToken(name):
			return nil, fmt.Errorf("name %q: must consist of letters, digits and !#$%%&'*+-.^_`|~", clip(name, 100))
		case own && why == "":
			return nil, fmt.Errorf("%s: it belongs to the connection, not to the request", key)
		case own:
			return nil, fmt.Errorf("%s: must not be given, %s", key, why)
		case parsed[key] != nil:
			return nil, fmt.Errorf("%s is given twice", key)
		case strings.ContainsFunc(value, isControl):
			return nil, fmt.Errorf("%s: must not contain line breaks or other control characters", key)
		case size > maxHeaderBytes:
			return nil, fmt.Errorf("must be at most %d bytes together", maxHeaderBytes)
		}
		parsed.Set(key, value)
	}
	return parsed, nil
}

func isToken(name string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
	return name != "" && !strings.ContainsFunc(name, other)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F }
