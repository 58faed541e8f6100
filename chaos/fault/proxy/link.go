package proxy

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// link is one connection through the proxy: two lanes, each with a goroutine
// that reads and one that writes.
type link struct {
	p      *Proxy
	client net.Conn
	up     chan parcel // closed by listen: the client sends no more
	down   chan parcel // closed by collect: Redis sends no more
	gone   chan struct{}

	mu      sync.Mutex
	server  net.Conn // nil until it is dialled
	ended   bool
	unpaid  pairs    // sent, not answered yet
	opening [][]byte // commands that a connection like this one needs first

	opaque bool // owned by deliver: replies are not paired any more
}

func newLink(p *Proxy, client net.Conn) *link {
	return &link{p: p, client: client, up: make(chan parcel, laneSize), down: make(chan parcel, laneSize), gone: make(chan struct{})}
}

// serve returns when the connection is over on both sides.
func (l *link) serve(ctx context.Context) {
	defer l.end(false)
	server, err := dial(ctx, l.p.upstream())
	if err != nil {
		l.end(true)
		return
	}
	if !l.attach(server) {
		return
	}
	var lanes sync.WaitGroup
	lanes.Go(l.listen)
	lanes.Go(l.deliver)
	lanes.Go(l.collect)
	lanes.Go(l.answer)
	lanes.Wait()
	l.mu.Lock()
	unpaid := l.unpaid.take()
	l.mu.Unlock()
	for _, c := range unpaid {
		if c.aimed != nil {
			c.aimed.miss()
		}
	}
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
}

func (l *link) attach(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		server.Close()
		return false
	}
	l.server = server
	return true
}

// end closes both sides at once; what is in the lanes is lost. With reset the
// client is told by a reset.
func (l *link) end(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.gone)
	if tcp, ok := l.client.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // closed already is as good
	}
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// put adds to a lane; false: the connection is over.
func (l *link) put(lane chan parcel, c parcel) bool {
	select {
	case lane <- c:
		return true
	case <-l.gone:
		return false
	}
}

// listen reads commands of the client.
func (l *link) listen() {
	defer close(l.up)
	r := bufio.NewReaderSize(l.client, 64<<10)
	for {
		raw, err := readCommand(r)
		if err != nil { // it has closed, is gone, or speaks something else
			return
		}
		if !l.put(l.up, parcel{raw: raw, due: l.p.up.due()}) {
			return
		}
	}
}

// deliver sends them to Redis, also when the client has gone meanwhile.
func (l *link) deliver() {
	w := bufio.NewWriterSize(l.server, 64<<10)
	flush := func() { _ = w.Flush() } // its error comes again with the next write
	for c := range l.up {
		switch l.p.up.wait(c.due, l.gone, flush) {
		case dead:
			return
		case lost:
			l.end(true)
			return
		}
		if !l.send(w, c.raw) {
			return
		}
		if len(l.up) == 0 && w.Flush() != nil {
			return
		}
	}
	flush()
	if l.p.up.wait(time.Time{}, l.gone, flush) != passes { // a farewell waits as well
		l.end(true)
		return
	}
	if tcp, ok := l.server.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // closed already is as good
	}
}

// send writes one command, unless a shot has other plans. It returns false when
// the connection is over.
func (l *link) send(w *bufio.Writer, raw []byte) bool {
	if l.opaque {
		_, err := w.Write(raw)
		return err == nil
	}
	c := l.p.names.parse(raw)
	if l.p.aim(c) && !l.goesOn(c, w) {
		return false
	}
	l.note(c)
	_, err := w.Write(raw)
	return err == nil
}

// goesOn does what a shot does before Redis gets the command. False: it does not
// get it by this connection, which is over.
func (l *link) goesOn(c *command, w *bufio.Writer) bool {
	a := c.aimed
	if a.shot.Do == DropReply || a.shot.Do == LateCopy {
		return true
	}
	_ = w.Flush() // its error comes again with the next write
	switch a.shot.Do {
	case Hold:
		if !l.sleep(a.shot.Delay) {
			a.miss()
			return false
		}
		a.seal(false)
		c.aimed = nil
		return true
	case Late:
		a.seal(true)
		l.p.sendLater(c, l.prologue())
	default:
		a.seal(false)
	}
	l.end(true)
	return false
}

// note remembers that a reply is to come.
func (l *link) note(c *command) {
	l.opaque = c.opaque
	if c.mute {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.opens {
		l.opening = append(l.opening, c.raw)
	}
	if c.aimed == nil {
		c.raw = nil // need not live until the reply
	}
	l.unpaid.push(c)
}

func (l *link) prologue() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.opening)
}

func (l *link) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.gone:
		return false
	}
}

// collect reads replies of Redis and pairs them with the commands.
func (l *link) collect() {
	defer close(l.down)
	r := bufio.NewReaderSize(l.server, 64<<10)
	for {
		first, err := r.Peek(1)
		if err != nil {
			return
		}
		var c *command
		if first[0] != '>' { // a push answers nothing
			l.mu.Lock()
			c = l.unpaid.pop()
			l.mu.Unlock()
		}
		if c != nil && c.opaque {
			l.copyRest(r)
			return
		}
		raw, err := readValue(r)
		if err != nil {
			if c != nil && c.aimed != nil {
				c.aimed.miss()
			}
			return
		}
		drop := c != nil && c.aimed != nil && l.executed(c, raw)
		if !l.put(l.down, parcel{raw: raw, due: l.p.down.due(), drop: drop}) || drop {
			return
		}
	}
}

// executed does what a shot does after Redis's reply. True: the connection is to
// break instead of it.
func (l *link) executed(c *command, reply []byte) bool {
	if reply[0] == '-' {
		c.aimed.miss()
		return false
	}
	if c.aimed.shot.Do == LateCopy {
		c.aimed.seal(true)
		l.p.sendLater(c, l.prologue())
		return false
	}
	c.aimed.seal(false)
	return true
}

// copyRest passes on what cannot be paired.
func (l *link) copyRest(r *bufio.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && !l.put(l.down, parcel{raw: slices.Clone(buf[:n]), due: l.p.down.due()}) || err != nil {
			return
		}
	}
}

// answer writes the replies to the client. It is the one that ends the link: a
// client that has gone leaves commands behind that still go up.
func (l *link) answer() {
	defer l.end(false)
	w := bufio.NewWriterSize(l.client, 64<<10)
	flush := func() { _ = w.Flush() } // its error comes again with the next write
	deaf := false
	for c := range l.down {
		switch l.p.down.wait(c.due, l.gone, flush) {
		case dead:
			return
		case lost:
			l.end(true)
			return
		}
		if c.drop { // not by a reset, which might overtake the replies before
			flush()
			return
		}
		if deaf {
			continue
		}
		if _, err := w.Write(c.raw); err != nil {
			deaf = true
		}
		if len(l.down) == 0 {
			deaf = w.Flush() != nil
		}
	}
	flush()
	l.end(l.p.down.wait(time.Time{}, l.gone, flush) == lost)
}
