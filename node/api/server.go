package api

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Source is what a Server shows.
type Source struct {
	Ready   func() error // nil, or why the node takes no jobs now
	Metrics prometheus.Gatherer
}

// Server answers on one address.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// stopTimeout bounds how long answers in flight may take when the node stops.
const stopTimeout = time.Second

// Listen binds the address; a port of 0 means any free one.
func Listen(address string, s Source) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Server{listener: l, server: &http.Server{
		Handler: routes(s), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
	}}, nil
}

// Addr is the bound address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve answers until stop is called, which waits for the answers in flight.
// failed is told if it ends by itself.
func (s *Server) Serve(failed func(error)) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if s.server.Shutdown(ctx) != nil {
			_ = s.server.Close()
		}
		<-done
	}
}

func routes(s Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok", "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			answer(w, http.StatusServiceUnavailable, "not ready", err.Error())
			return
		}
		answer(w, http.StatusOK, "ready", "")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	}))
	return mux
}

func answer(w http.ResponseWriter, code int, status, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct { // the client may be gone
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{status, reason})
}
