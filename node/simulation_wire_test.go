package node

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// wire is one connection of an actor. What is written to it becomes a call, and
// each call has a fate. Calls of one wire are done in their order, whatever the
// actor does meanwhile: one that gave up and closed the wire has sent them all
// the same.
type wire struct {
	a     *actor
	line  *line
	calls chan *request

	mu     sync.Mutex
	sent   []byte // the beginning of a command
	got    []byte // answers that nobody has read yet
	broken error  // why nothing more comes
	closed bool
	readBy time.Time
	news   chan struct{} // one slot
}

// line is a connection as miniredis sees it, for one command at a time.
type line struct {
	out  bytes.Buffer
	w    *bufio.Writer
	peer *server.Peer
}

func newLine() *line {
	l := &line{}
	l.w = bufio.NewWriterSize(&l.out, 512)
	l.peer = server.NewPeer(l.w)
	return l
}

func newWire(a *actor) *wire {
	w := &wire{a: a, line: newLine(), calls: make(chan *request, 256), news: make(chan struct{}, 1)}
	a.world.flying.Go(func() {
		for c := range w.calls {
			w.do(c)
		}
	})
	return w
}

// do lets a call meet its fate.
func (w *wire) do(c *request) {
	world, f := w.a.world, c.fate
	switch f.what {
	case lost: // the caller waits until its time is up
		world.told(c, "lost", nil)
		return
	case late:
		w.fail(syscall.ECONNRESET)
	case mute:
		defer w.fail(syscall.ECONNRESET)
	}
	world.wait(f.before)
	if world.down() {
		w.fail(syscall.ECONNRESET)
		world.told(c, "lost in the outage", nil)
		return
	}
	answer := world.exec(w.line, c)
	world.told(c, f.what.String(), answer)
	if f.what == twice {
		world.flying.Go(func() {
			world.wait(f.again)
			copied := newLine()
			world.told(c, "copy", world.exec(copied, c))
		})
	}
	if f.what == late || f.what == mute {
		return
	}
	world.wait(f.after)
	w.mu.Lock()
	w.got = append(w.got, answer...)
	w.mu.Unlock()
	ring(w.news)
}

// fail resets the connection.
func (w *wire) fail(why error) {
	w.mu.Lock()
	if w.broken == nil {
		w.broken = why
	}
	w.mu.Unlock()
	ring(w.news)
}

// Write hands whole commands over; it blocks only while the actor is paused.
func (w *wire) Write(p []byte) (int, error) {
	w.a.awake()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil || w.closed {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	w.sent = append(w.sent, p...)
	for {
		args, rest, whole := readCommand(w.sent)
		if !whole {
			return len(p), nil
		}
		w.sent = rest
		w.calls <- w.a.call(args)
	}
}

func (w *wire) Read(p []byte) (int, error) {
	for {
		w.a.awake()
		w.mu.Lock()
		got, by, broken := len(w.got), w.readBy, w.broken
		switch {
		case w.closed:
			broken = net.ErrClosed
		case !by.IsZero() && !time.Now().Before(by): // also where an answer lies here: so does a socket
			broken, got = os.ErrDeadlineExceeded, 0
		case got > 0:
			n := copy(p, w.got)
			w.got = w.got[n:]
			w.mu.Unlock()
			return n, nil
		}
		w.mu.Unlock()
		if broken != nil {
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: broken}
		}
		w.listen(by)
	}
}

// listen waits for news, until by.
func (w *wire) listen(by time.Time) {
	if by.IsZero() {
		<-w.news
		return
	}
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-w.news:
	case <-timer.C:
	}
}

func (w *wire) Close() error {
	w.a.forget(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.line.peer.Close()
		close(w.calls)
		ring(w.news)
	}
	return nil
}

func (w *wire) SetDeadline(t time.Time) error { return w.SetReadDeadline(t) }
func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readBy = t
	ring(w.news)
	return nil
}
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
func (w *wire) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (w *wire) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// readCommand cuts the first whole command off.
func readCommand(b []byte) (args []string, rest []byte, whole bool) {
	r := bytes.NewReader(b)
	in := bufio.NewReaderSize(r, max(len(b), 16))
	n, err := readLength(in, '*')
	for i := 0; i < n && err == nil; i++ {
		var size int
		if size, err = readLength(in, '$'); err != nil {
			break
		}
		text := make([]byte, size+2)
		if _, err = io.ReadFull(in, text); err == nil {
			args = append(args, string(text[:size]))
		}
	}
	if err != nil {
		return nil, b, false
	}
	return args, b[len(b)-r.Len()-in.Buffered():], true
}

var errNotRESP = errors.New("what the actor sends is no command")

func readLength(in *bufio.Reader, mark byte) (int, error) {
	text, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if text[0] != mark {
		panic(errNotRESP)
	}
	return strconv.Atoi(text[1 : len(text)-2])
}
