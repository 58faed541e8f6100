package sweeper

import (
	"context"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

const (
	// testimonyRest is the pause between two testimonies about one session: a
	// witness connects, and a stopped process has room for so many connections.
	testimonyRest = 500 * time.Millisecond
	// testimonyLimit is the longest that a testimony may take.
	testimonyLimit = 2 * time.Second
)

// hearing is what is known of an accused session besides its silence. Only the
// goroutine of judge touches it.
type hearing struct {
	next time.Time // not before
	busy bool      // a trial is on
}

// judge looks at the silent ones after each answered beat until ctx ends. Each
// trial has a goroutine of its own, since a witness takes its time and several
// nodes may die together; judge waits for them at the end.
func (s *Sweeper) judge(ctx context.Context) {
	hearings := map[string]*hearing{}
	closed := make(chan string) // trials that are over
	open := 0
	defer func() {
		for ; open > 0; open-- {
			<-closed
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case session := <-closed:
			open--
			hearings[session] = &hearing{next: time.Now().Add(testimonyRest)}
		case <-s.o.Watch.Changed():
			now := time.Now()
			for _, session := range s.silent(now) {
				h := hearings[session]
				if h != nil && (h.busy || now.Before(h.next)) {
					continue
				}
				hearings[session] = &hearing{busy: true}
				open++
				go func() {
					defer func() { closed <- session }()
					s.try(ctx, session, now)
				}()
			}
			tidy(hearings, now)
		}
	}
}

// tidy forgets hearings that nothing came of.
func tidy(hearings map[string]*hearing, now time.Time) {
	for session, h := range hearings {
		if !h.busy && now.After(h.next) {
			delete(hearings, session)
		}
	}
}

// silent returns whom this node may condemn and has reason to look at: any
// session while it sweeps, else the holder of the lock. Never itself.
func (s *Sweeper) silent(now time.Time) []string {
	candidates := []string{s.o.Held()}
	if s.sweeps() {
		candidates = s.o.Watch.Sessions()
	}
	var silent []string
	for _, session := range candidates {
		if session != "" && session != s.o.Session && s.o.Watch.Silent(session, now) >= s.o.Silence {
			silent = append(silent, session)
		}
	}
	return silent
}

func (s *Sweeper) sweeps() bool {
	t := s.term.Load()
	return t != nil && t.Valid()
}

// try is the two-witness rule for one silent session. The beat is read before
// the witness is heard: if it changes meanwhile, Redis refuses.
func (s *Sweeper) try(ctx context.Context, session string, now time.Time) {
	beat, silent, ok := s.o.Watch.look(session, now)
	switch {
	case !ok || silent < s.o.Silence:
	case silent >= s.o.Lease:
		s.condemn(ctx, session, beat, silent, "silent for a whole lease")
	case s.testify(ctx, session):
		s.condemn(ctx, session, beat, silent, "silent, and a witness")
	}
}

func (s *Sweeper) testify(ctx context.Context, session string) bool {
	ctx, cancel := context.WithTimeout(ctx, testimonyLimit)
	defer cancel()
	return s.o.Witness.Testify(ctx, session)
}

// condemn declares a session dead, and passes on what follows from it. When the
// result is unknown the next second's look at the condemned ones finds it.
func (s *Sweeper) condemn(ctx context.Context, session string, beat int64, silent time.Duration, why string) {
	verdict, err := s.o.Space.Condemn(ctx, session, beat)
	if err != nil {
		if ctx.Err() == nil {
			s.trouble.note("condemn", err)
		}
		return
	}
	s.trouble.over("condemn")
	if verdict == queue.Alive {
		return
	}
	if verdict == queue.Done {
		s.count.condemned.Add(1)
		s.o.Log.Warn().Str("of", queue.NodeName(session)).Str("session", session).
			Str("reason", why).Dur("silent_ms", silent).Msgf("condemned node %s", queue.NodeName(session))
		if t := s.term.Load(); t != nil {
			t.ward.add(session)
		}
	}
	if s.o.Held() == session { // the lock went with it
		s.o.Lock.Nudge()
	}
}
