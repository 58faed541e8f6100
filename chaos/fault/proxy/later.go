package proxy

import (
	"bufio"
	"context"
	"net"
	"time"
)

// patience bounds a late command: dialling, sending, and its reply.
const patience = 10 * time.Second

// sendLater sends a command on a connection of its own, after the delay of its
// shot. The proxy owns the goroutine.
func (p *Proxy) sendLater(c *command, opening [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		c.aimed.answered("error: the proxy has ended")
		return
	}
	p.work.Go(func() { c.aimed.answered(p.late(p.ctx, c, opening)) })
}

// late returns what Redis said.
func (p *Proxy) late(ctx context.Context, c *command, opening [][]byte) string {
	t := time.NewTimer(c.aimed.shot.Delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return "error: the proxy has ended"
	}
	conn, err := dial(ctx, p.upstream())
	if err != nil {
		return "error: " + err.Error()
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	reply, err := ask(conn, append(opening, c.raw))
	if err != nil {
		return "error: " + err.Error()
	}
	return gist(reply)
}

// ask sends commands and returns the reply to the last one.
func ask(conn net.Conn, commands [][]byte) (reply []byte, err error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	for _, raw := range commands {
		if _, err := conn.Write(raw); err != nil {
			return nil, err
		}
		if reply, err = readValue(r); err != nil {
			return nil, err
		}
	}
	return reply, nil
}
