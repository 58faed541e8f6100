package faulty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// sockets note what reaches the network. What they dial is the other end of a
// pipe that answers each byte with itself.
type sockets struct {
	memberlist.NodeAwareTransport
	begun time.Time

	mu     sync.Mutex
	sent   []string // "<payload> after <time>"
	closed bool
	dialed int
}

func (s *sockets) WriteToAddress(b []byte, _ memberlist.Address) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, fmt.Sprintf("%s after %v", b, time.Since(s.begun).Truncate(10*time.Millisecond)))
	return time.Now(), nil
}

func (s *sockets) DialAddressTimeout(memberlist.Address, time.Duration) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed++
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(theirs, theirs) }() // ends when ours is closed
	return ours, nil
}

func (s *sockets) Shutdown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *sockets) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// bubble runs f with a transport of n1 under these links, in virtual time.
func bubble(t *testing.T, links string, f func(t *testing.T, r *Rules, tr memberlist.NodeAwareTransport, s *sockets)) {
	synctest.Test(t, func(t *testing.T) {
		s := &sockets{begun: time.Now()}
		r := rules(t, 1, links)
		tr := r.Wrap(s)
		f(t, r, tr, s)
		if err := tr.Shutdown(); err != nil || !s.closed {
			t.Errorf("Shutdown = %v, sockets closed: %v", err, s.closed)
		}
	})
}

func TestPacketsAreLateInTheOrderOfTheirDueTime(t *testing.T) {
	t.Parallel()
	bubble(t, `{"from":"n1","to":"n2","delay":30000000},{"from":"n1","to":"nine","delay":10000000}`,
		func(t *testing.T, _ *Rules, tr memberlist.NodeAwareTransport, s *sockets) {
			b := []byte("a")
			for _, p := range []struct{ text, to string }{{"a", "10.0.0.2:1"}, {"b", "10.0.0.2:9"}, {"c", "10.0.0.3:1"}} {
				b[0] = p.text[0] // one buffer for all, as memberlist may
				if _, err := tr.WriteTo(b, p.to); err != nil {
					t.Fatal(err)
				}
			}
			b[0] = 'x'
			time.Sleep(time.Second)
			if got, want := s.got(), []string{"c after 0s", "b after 10ms", "a after 30ms"}; !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
}

func TestASecondCopyFollows(t *testing.T) {
	t.Parallel()
	bubble(t, `{"from":"n1","to":"n2","duplicate":1}`, func(t *testing.T, _ *Rules, tr memberlist.NodeAwareTransport, s *sockets) {
		_, _ = tr.WriteTo([]byte("a"), "10.0.0.2:1")
		if got := s.got(); !slices.Equal(got, []string{"a after 0s"}) {
			t.Errorf("at first %q was sent", got)
		}
		time.Sleep(echo)
		if got := s.got(); len(got) != 2 {
			t.Errorf("%q was sent, want it twice", got)
		}
	})
}

func TestAfterShutdownNothingIsSent(t *testing.T) {
	t.Parallel()
	bubble(t, `{"from":"n1","to":"n2","delay":30000000}`, func(t *testing.T, _ *Rules, tr memberlist.NodeAwareTransport, s *sockets) {
		_, _ = tr.WriteTo([]byte("a"), "10.0.0.2:1")
		if err := tr.Shutdown(); err != nil {
			t.Fatal(err)
		}
		_, _ = tr.WriteTo([]byte("b"), "10.0.0.2:1")
		time.Sleep(time.Second)
		if got := s.got(); len(got) != 0 {
			t.Errorf("%q was sent after Shutdown", got)
		}
	})
}

func TestThePacketsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	bubble(t, `{"from":"n1","to":"n2","delay":30000000}`, func(t *testing.T, _ *Rules, tr memberlist.NodeAwareTransport, s *sockets) {
		for range mostWaiting + 5 {
			_, _ = tr.WriteTo([]byte("a"), "10.0.0.2:1")
		}
		time.Sleep(time.Second)
		if got := len(s.got()); got != mostWaiting {
			t.Errorf("%d arrived, want %d", got, mostWaiting)
		}
	})
}

const (
	there = `{"from":"n1","to":"n2","drop":1}`
	back  = `{"from":"n2","to":"n1","drop":1}`
)

func TestAConnectIntoACutHasNoAnswer(t *testing.T) {
	t.Parallel()
	for name, links := range map[string]string{"on the way there": there, "on the way back": back} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, links, func(t *testing.T, r *Rules, tr memberlist.NodeAwareTransport, s *sockets) {
				begun := time.Now()
				_, err := tr.DialTimeout("10.0.0.2:1", 3*time.Second)
				if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 3*time.Second || s.dialed != 0 {
					t.Errorf("DialTimeout = %v after %v, %d connects", err, time.Since(begun), s.dialed)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := r.Dial(ctx, "tcp", "10.0.0.2:1"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Dial = %v, want that nothing came in time", err)
				}
			})
		})
	}
}

func TestAConnectIntoACutDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	bubble(t, there, func(t *testing.T, _ *Rules, tr memberlist.NodeAwareTransport, _ *sockets) {
		begun, ended := time.Now(), make(chan error)
		go func() {
			_, err := tr.DialTimeout("10.0.0.2:1", time.Minute)
			ended <- err
		}()
		synctest.Wait()
		_ = tr.Shutdown()
		if err := <-ended; err == nil || time.Since(begun) > 0 {
			t.Errorf("DialTimeout = %v after %v", err, time.Since(begun))
		}
	})
}

func TestTheWitnessSeesRefusalWhereNothingIsCut(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := rules(t, 1, there)
	conn, err := r.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Close(), l.Close()
	var op *net.OpError
	if _, err := r.Dial(t.Context(), "tcp", l.Addr().String()); !errors.As(err, &op) || op.Timeout() {
		t.Errorf("Dial = %v, want a refusal", err)
	}
}

func TestAStreamHangsWhileItIsCut(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, tr memberlist.NodeAwareTransport) net.Conn {
		conn, err := tr.DialTimeout("10.0.0.2:1", 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	cut := func(t *testing.T, r *Rules, links string) {
		write(t, r.path, fmt.Sprintf(`{%s, "links": [%s]}`, peersText, links))
		time.Sleep(lookEvery)
	}
	for name, f := range map[string]func(t *testing.T, r *Rules, conn net.Conn){
		"until it is healed": func(t *testing.T, r *Rules, conn net.Conn) {
			cut(t, r, there)
			time.AfterFunc(5*time.Second, func() { write(t, r.path, `{}`) })
			begun := time.Now()
			if _, err := conn.Write([]byte("a")); err != nil || time.Since(begun) < 5*time.Second || time.Since(begun) > 6*time.Second {
				t.Errorf("Write = %v after %v, want 5 s", err, time.Since(begun))
			}
		},
		"until its deadline": func(t *testing.T, r *Rules, conn net.Conn) {
			_, _ = conn.Write([]byte("a"))
			cut(t, r, back)
			begun := time.Now()
			_ = conn.SetDeadline(begun.Add(time.Second))
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Second {
				t.Errorf("Read = %v after %v, want 1 s", err, time.Since(begun))
			}
		},
		"for the time of a connect where there is no deadline": func(t *testing.T, r *Rules, conn net.Conn) {
			cut(t, r, there)
			begun := time.Now()
			if _, err := conn.Write([]byte("a")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 10*time.Second {
				t.Errorf("Write = %v after %v, want 10 s", err, time.Since(begun))
			}
		},
		"until it is closed": func(t *testing.T, r *Rules, conn net.Conn) {
			cut(t, r, back)
			time.AfterFunc(time.Second, func() { _ = conn.Close() })
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read = %v", err)
			}
		},
		"and one that is only slow waits there and back": func(t *testing.T, r *Rules, conn net.Conn) {
			cut(t, r, `{"from":"n1","to":"n2","delay":1000000000},{"from":"n2","to":"n1","delay":2000000000}`)
			begun, b := time.Now(), make([]byte, 1)
			if _, err := conn.Write([]byte("ab")); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the answer is read in two pieces
				if _, err := conn.Read(b); err != nil {
					t.Fatal(err)
				}
			}
			if d := time.Since(begun); d != 3*time.Second {
				t.Errorf("a question and its answer took %v, want 3 s", d)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, "", func(t *testing.T, r *Rules, tr memberlist.NodeAwareTransport, _ *sockets) {
				conn := open(t, tr)
				f(t, r, conn)
				_ = conn.Close()
			})
		})
	}
}
