package faulty

import (
	"container/heap"
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// mostWaiting bounds the packets under way.
const mostWaiting = 10_000

// Wrap puts the rules between memberlist and its sockets: for cluster.Config.
func (r *Rules) Wrap(inner memberlist.NodeAwareTransport) memberlist.NodeAwareTransport {
	t := &transport{NodeAwareTransport: inner, rules: r}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// transport sends by the rules. What arrives was let through by its sender.
type transport struct {
	memberlist.NodeAwareTransport
	rules *Rules
	life  context.Context // ends at Shutdown: a stream that hangs must not hold up the stop
	end   context.CancelFunc

	mu      sync.Mutex
	waiting packets
	timer   *time.Timer // fires at the first of them; nil: never needed
	closed  bool
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress reports success for what is lost, as a network does.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (sent time.Time, err error) {
	sent = time.Now()
	for _, later := range t.rules.fate(a.Addr) {
		if later > 0 {
			t.delay(packet{due: sent.Add(later), to: a, bytes: append([]byte(nil), b...)}) // b is memberlist's to use again
			continue
		}
		if sent, err = t.NodeAwareTransport.WriteToAddress(b, a); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (t *transport) delay(p packet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.waiting) >= mostWaiting {
		return
	}
	heap.Push(&t.waiting, p)
	t.arm()
}

// arm sets the timer to the first packet. The caller holds the lock.
func (t *transport) arm() {
	if t.closed || len(t.waiting) == 0 {
		return
	}
	d := time.Until(t.waiting[0].due)
	if t.timer == nil {
		t.timer = time.AfterFunc(d, t.deliver)
		return
	}
	t.timer.Reset(d)
}

// deliver sends what is due. It holds the lock all the time, so that Shutdown
// waits for it; a datagram does not block.
func (t *transport) deliver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.closed && len(t.waiting) > 0 && time.Until(t.waiting[0].due) <= 0 {
		p := heap.Pop(&t.waiting).(packet)
		_, _ = t.NodeAwareTransport.WriteToAddress(p.bytes, p.to) // nobody waits for it
	}
	t.arm()
}

// Shutdown drops what still waits, ends the streams and closes the sockets.
func (t *transport) Shutdown() error {
	t.end()
	t.mu.Lock()
	t.closed, t.waiting = true, nil
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	return t.NodeAwareTransport.Shutdown()
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// packet is one under way.
type packet struct {
	due   time.Time
	to    memberlist.Address
	bytes []byte
}

// packets is a heap, the first due one on top.
type packets []packet

func (p packets) Len() int           { return len(p) }
func (p packets) Less(i, j int) bool { return p[i].due.Before(p[j].due) }
func (p packets) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *packets) Push(x any)        { *p = append(*p, x.(packet)) }
func (p *packets) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = packet{}
	*p = (*p)[:last]
	return x
}
