package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// arrival is one webhook that came in whole.
type arrival struct {
	number   int    // in the address; -1 if it is none of ours
	id       string // Webhook-Id
	at       time.Time
	sum      [sha256.Size]byte
	answer   answer // planned for it
	answered bool   // written to a client that was still there
}

// tally counts what the receiver did. Each webhook counts once in done.
type tally struct {
	arrivals int
	taken    int // webhooks that were answered with 2xx
	refused  int // webhooks that were refused for good
	faults   int // answers that ask for another attempt
	done     int // taken and refused
	doneOnce int // of these, the ones without delay
}

// receiver stands for all the world's webhook endpoints. Expect comes before
// the enqueue of a webhook, so no arrival finds it unprepared.
type receiver struct {
	listener net.Listener

	mu       sync.Mutex
	plans    []plan
	came     []int  // arrivals of each number
	done     []bool // taken or refused for good
	arrivals []arrival
	tally    tally
}

// openReceiver takes a free port on 127.0.0.1. run serves it.
func openReceiver() (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	return &receiver{listener: l}, nil
}

func (r *receiver) addr() string { return r.listener.Addr().String() }

// url is where the webhook of that number goes.
func (r *receiver) url(number int) string {
	return "http://" + r.addr() + "/hooks/" + strconv.Itoa(number)
}

// run serves until ctx ends; then it leaves no request and no port behind.
func (r *receiver) run(ctx context.Context) error {
	hurry, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           r,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // killed clients are meant to be
		BaseContext:       func(net.Listener) context.Context { return hurry },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(r.listener) }() // ends with Shutdown or Close
	select {
	case err := <-failed:
		return fmt.Errorf("receiver: %w", err)
	case <-ctx.Done():
	}
	bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if server.Shutdown(bounded) != nil {
		_ = server.Close()
	}
	<-failed
	return nil
}

// expect keeps the plan of the next webhook and returns its number.
func (r *receiver) expect(p plan) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plans, r.came, r.done = append(r.plans, p), append(r.came, 0), append(r.done, false)
	return len(r.plans) - 1
}

// ServeHTTP reads a webhook whole, keeps what it saw, and answers as planned.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxLine))
	if err != nil { // its sender died
		return
	}
	index, a := r.note(arrival{
		number: numberIn(req.URL.Path), id: req.Header.Get("Webhook-Id"), at: at, sum: sha256.Sum256(body),
	})
	if a.wait > 0 {
		t := time.NewTimer(a.wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-req.Context().Done():
			return
		}
	}
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	w.WriteHeader(a.status)
	fmt.Fprintln(w, strings.ToLower(http.StatusText(a.status))+", as planned") // an error shows in Flush
	if http.NewResponseController(w).Flush() == nil && req.Context().Err() == nil {
		r.settle(index)
	}
}

func numberIn(path string) int {
	digits, ok := strings.CutPrefix(path, "/hooks/")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 {
		return -1
	}
	return n
}

// note keeps an arrival and returns its place and its answer.
func (r *receiver) note(a arrival) (int, answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.number >= len(r.plans) {
		a.number = -1
	}
	if a.number < 0 {
		a.answer = answer{status: http.StatusNotFound}
	} else {
		a.answer = r.plans[a.number].answer(r.came[a.number])
		r.came[a.number]++
	}
	r.tally.arrivals++
	r.arrivals = append(r.arrivals, a)
	return len(r.arrivals) - 1, a.answer
}

// settle keeps that the answer to an arrival found its client.
func (r *receiver) settle(index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.arrivals[index]
	a.answered = true
	switch {
	case a.number < 0:
		return
	case !a.answer.willing() && !a.answer.final():
		r.tally.faults++
		return
	case r.done[a.number]:
		return
	}
	r.done[a.number] = true
	r.tally.done++
	if r.plans[a.number].delay == 0 {
		r.tally.doneOnce++
	}
	if a.answer.willing() {
		r.tally.taken++
	} else {
		r.tally.refused++
	}
}

// counts returns the tally so far.
func (r *receiver) counts() tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// seen returns a copy of all arrivals so far, in their order.
func (r *receiver) seen() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]arrival(nil), r.arrivals...)
}

// missing returns how many of these ids have not arrived since then.
func (r *receiver) missing(ids []string, since time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	for i := len(r.arrivals) - 1; i >= 0 && r.arrivals[i].at.After(since); i-- {
		delete(left, r.arrivals[i].id)
	}
	return len(left)
}

// unfinished returns how many of these ids are neither taken nor refused.
func (r *receiver) unfinished(ids []string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	for _, a := range r.arrivals {
		if a.number >= 0 && r.done[a.number] {
			delete(left, a.id)
		}
	}
	return len(left)
}
