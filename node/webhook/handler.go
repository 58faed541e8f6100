package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/kelpiehq/kelpie/queue"
	"github.com/rs/zerolog"
)

const (
	// idleTimeout is below the 5 s after which common receivers hang up: a request
	// that meets such an end of a connection fails and spends an attempt.
	idleTimeout = 4 * time.Second
	// bodyTimeout bounds the wait for an answer's body once its status is known.
	bodyTimeout = 2 * time.Second
	// slowAfter is how long a delivery must have held its slot for its time-out to
	// count against the host.
	slowAfter = time.Second
)

// Handler delivers webhooks. It is safe for concurrent use and starts nothing
// until the first delivery; the owner calls Close after the last one.
type Handler struct {
	transport     *http.Transport
	hosts         *hosts
	signer        signer
	userAgent     string
	maxRetryAfter time.Duration
	bodyTimeout   time.Duration
	slowAfter     time.Duration
	now           func() time.Time
	log           zerolog.Logger
}

// New returns a Handler. It does no I/O. The error names every fault in o.
func New(o Options) (*Handler, error) {
	o.setDefaults()
	keys, err := newSigner(o.Secrets)
	if err := errors.Join(o.check(), err); err != nil {
		return nil, err
	}
	g := &guard{
		allow:  o.allowed(),
		dialer: net.Dialer{Timeout: o.ConnectTimeout, Resolver: o.Resolver},
	}
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &Handler{
		transport: &http.Transport{
			Proxy:                  nil, // a proxy would connect where the guard cannot see it
			DialContext:            g.dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
			TLSHandshakeTimeout:    o.TLSTimeout,
			ResponseHeaderTimeout:  o.HeaderTimeout,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    o.PerHost,
			IdleConnTimeout:        idleTimeout,
			DisableCompression:     true, // an answer is kept, not unpacked
			Protocols:              &http1,
		},
		hosts:         newHosts(o.PerHost),
		signer:        keys,
		userAgent:     "kelpie/" + o.Version,
		maxRetryAfter: o.MaxRetryAfter,
		bodyTimeout:   bodyTimeout,
		slowAfter:     slowAfter,
		now:           time.Now,
		log:           o.Log,
	}, nil
}

// Close ends the connections that wait for another delivery.
func (h *Handler) Close() error {
	h.transport.CloseIdleConnections()
	return nil
}

// Deliver makes one attempt to deliver job. Its result is one of: nil; a plain
// error, to be tried again after the backoff; queue.RetryAfter; queue.Discard,
// where another attempt would not help; queue.Snooze, where the host has its
// fill and nothing was sent. When ctx ends first the error wraps its cause.
func (h *Handler) Deliver(ctx context.Context, job *queue.Job[Request]) error {
	return h.attempt(ctx, job.ID, job.In).outcome()
}

func (h *Handler) attempt(ctx context.Context, id string, r Request) verdict {
	p, err := r.plan()
	if err == nil {
		err = h.signer.check(id)
	}
	if err != nil {
		return verdict{fate: hopeless, err: err}
	}
	wait, ok := h.hosts.enter(p.host, h.now())
	if !ok {
		return verdict{fate: putOff, wait: wait}
	}
	speed, begun := noNews, time.Now()
	defer func() { h.hosts.leave(p.host, speed, h.now()) }() // deferred: a panic must not keep the place
	got, err := h.send(ctx, id, p)
	if err == nil {
		speed = answered
		return got.verdict(h.maxRetryAfter)
	}
	v := h.unanswered(ctx, id, p, err)
	if v.fate == again && isTimeout(err) && time.Since(begun) >= h.slowAfter {
		speed = timedOut
	}
	return v
}

// unanswered tells what becomes of a job whose request got no answer.
func (h *Handler) unanswered(ctx context.Context, id string, p plan, err error) verdict {
	var forbidden *forbiddenError
	switch {
	case ctx.Err() != nil:
		return verdict{fate: cutShort, err: fmt.Errorf("delivery cut short: %w", context.Cause(ctx))}
	case errors.As(err, &forbidden):
		h.log.Warn().Str("job", id).Str("host", p.host).Stringer("address", forbidden.addr).Msg("webhook refused: the address is not allowed")
		return verdict{fate: hopeless, err: forbidden} // without how far the request had come: nothing was to be sent
	}
	return verdict{fate: again, err: err}
}

// send makes the request and reads its answer. It goes straight to the transport:
// there is no client that could follow a redirect or keep a cookie.
func (h *Handler) send(ctx context.Context, id string, p plan) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	ctx, at := watchPhase(ctx)
	req, err := http.NewRequestWithContext(ctx, p.method, p.url.String(), bytes.NewReader(p.body))
	if err != nil {
		return answer{}, fmt.Errorf("request: %w", err)
	}
	h.sign(req, id, p)
	resp, err := h.transport.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return answer{}, &timeoutError{after: p.timeout, phase: at.get()}
		}
		return answer{}, &noAnswerError{phase: at.get(), err: err}
	}
	defer resp.Body.Close()
	got := answer{status: resp.StatusCode, header: resp.Header, at: h.now()}
	enough := time.AfterFunc(h.bodyTimeout, cancel)
	defer enough.Stop()
	got.excerpt = readExcerpt(resp.Body)
	return got, nil
}

// sign sets the headers that are made anew for each attempt.
func (h *Handler) sign(req *http.Request, id string, p plan) {
	req.Header = p.header
	if _, chosen := req.Header["User-Agent"]; !chosen {
		req.Header.Set("User-Agent", h.userAgent)
	}
	now := h.now()
	req.Header.Set(headerID, id)
	req.Header.Set(headerTime, stamp(now))
	if signature := h.signer.sign(id, now, p.body); signature != "" {
		req.Header.Set(headerSig, signature)
	}
}

// isTimeout tells if err is a receiver that took too long, at whatever stage.
func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	return errors.As(err, &slow) && slow.Timeout()
}
