package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kelpiehq/kelpie/chaos/process"
	"github.com/kelpiehq/kelpie/queue"
)

// The demo ends by itself after stageTime and what it takes to judge and clean
// up: less than a minute in all.
const stageTime = 55 * time.Second

var errTooLong = fmt.Errorf("not all was over after %v", stageTime)

// names of the nodes: the first three start, the others replace.
var (
	firstNodes   = []string{"bess", "fly", "moss"}
	replacements = []string{"glen", "nell"}
)

// demo is one performance. Its fields are set once, before anything runs.
type demo struct {
	program string // kelpie
	args    []string
	letters []letter
	journal *journal
	show    func(scene) // called several times a second; nil: there is no screen
	fail    func(error) // ends the performance

	kennel   *process.Kennel
	store    *store
	jobs     *queue.Client
	prefix   string
	receiver *receiver
	feeder   *feeder
	herd     *herd
	watch    *watch
	faults   *faults
	strain   strain
}

// run performs and judges. Whatever happens, it leaves no process, file or port
// behind. The error says why there is no verdict.
func (d *demo) run(ctx context.Context) (_ report, err error) {
	ctx, d.fail = context.WithCancelCause(ctx)
	defer d.fail(nil)
	if d.kennel, err = process.Open(process.Options{Name: "kelpie-demo"}); err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, d.kennel.Close()) }()
	if err := d.open(ctx); err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, d.jobs.Close(), d.store.close()) }()
	r, err := d.perform(ctx)
	if err == nil && len(r.broken) == 0 {
		return r, nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, errOutputGone) {
		d.journal.testify(d.kennel.Testimony()) // nobody ended it on purpose
	}
	return r, err
}

// open starts the store and prepares the rest; nothing else runs yet.
func (d *demo) open(ctx context.Context) (err error) {
	if d.store, err = openStore(ctx, d.kennel); err != nil {
		return err
	}
	d.journal.say("store: %s, %s, %s", d.store.name, d.store.url, d.store.detail)
	d.prefix = "demo-" + hex.EncodeToString(random(6))
	if d.jobs, err = queue.New(d.store.rdb, queue.Options{Prefix: d.prefix}); err != nil {
		return errors.Join(err, d.store.close())
	}
	if d.receiver, err = openReceiver(); err != nil {
		return errors.Join(err, d.store.close())
	}
	d.feeder = newFeeder(d.jobs, d.receiver, d.letters)
	d.watch = &watch{jobs: d.jobs, journal: d.journal}
	d.herd = &herd{kennel: d.kennel, program: d.program, args: d.args, url: d.store.url, prefix: d.prefix, lost: d.fail}
	d.faults = &faults{
		jobs: d.jobs, herd: d.herd, receiver: d.receiver, watch: d.watch, journal: d.journal, names: replacements,
		early: window{3 * time.Second, 7 * time.Second}, late: window{2 * time.Second, 5 * time.Second},
	}
	return nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// perform runs everything and waits for it. The order of the end is the reverse
// of the start.
func (d *demo) perform(ctx context.Context) (report, error) {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		if err := d.receiver.run(ctx); err != nil {
			d.fail(err)
		}
	})
	wg.Go(func() { d.watch.run(ctx) })
	wg.Go(func() { d.strain.run(ctx) })
	wg.Go(func() {
		if d.show != nil {
			d.draw(ctx)
		} else {
			d.tell(ctx)
		}
	})
	defer d.herd.retire()

	limit := d.journal.begun.Add(stageTime)
	stage, end := context.WithDeadlineCause(ctx, limit, errTooLong)
	defer end()
	if err := d.play(stage); err != nil && !errors.Is(context.Cause(stage), errTooLong) {
		return report{}, err
	} else if err != nil {
		d.journal.say("%v", err)
	}
	return d.judge(ctx)
}

// play is the performance: nodes, webhooks, faults, until all is delivered.
func (d *demo) play(ctx context.Context) error {
	d.journal.say("receiver: http://%s, which fails now and then", d.receiver.addr())
	for _, name := range firstNodes {
		c, err := d.herd.start(name)
		if err != nil {
			return err
		}
		d.journal.say("node %s: process %d", name, c.PID())
	}
	if err := d.herd.gather(ctx, d.jobs); err != nil {
		return err
	}
	d.journal.say("the nodes see each other; enqueuing, part of it due in 2 to 20 s")
	enough := make(chan struct{})
	fed := make(chan error, 1)
	feeding, stop := context.WithCancel(ctx)
	go func() { fed <- d.feeder.run(feeding, enough) }() // ends below
	err := d.faults.run(ctx)
	close(enough)
	if err != nil {
		stop()
	}
	defer stop()
	if err := errors.Join(err, <-fed); err != nil {
		return err
	}
	d.journal.say("enqueued %d webhooks; waiting for the last ones", d.feeder.accepted())
	return d.drained(ctx)
}

// drained waits until the receiver has dealt with all webhooks and the store has
// no job that could still arrive.
func (d *demo) drained(ctx context.Context) error {
	return await(ctx, func() (bool, error) {
		if d.receiver.counts().done < d.feeder.accepted() {
			return false, nil
		}
		q, err := d.jobs.Queue(ctx, space)
		return q.Waiting+q.Delayed+q.Active == 0, err
	})
}

// judge hands the evidence to the referee.
func (d *demo) judge(ctx context.Context) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var dead []string
	for r, err := range d.jobs.Jobs(ctx, space, queue.Dead) {
		if err != nil {
			return report{}, err
		}
		dead = append(dead, r.ID)
	}
	_, changes := d.watch.latest()
	return report{
		verdict: judge(evidence{
			posted: d.feeder.book(), arrivals: d.receiver.seen(), kills: d.faults.kills, dead: dead,
			bars: barsOf(d.store), strain: d.strain.spread(),
		}),
		kills: d.faults.kills, changes: changes, store: d.store.name, took: time.Since(d.journal.begun),
	}, nil
}

// draw shows the scene until ctx ends, and once more then.
func (d *demo) draw(ctx context.Context) {
	for {
		d.show(d.scene())
		if pause(ctx, 200*time.Millisecond) != nil {
			d.show(d.scene())
			return
		}
	}
}

// tell says in a line now and then where things stand, which also shows whether
// anybody still listens.
func (d *demo) tell(ctx context.Context) {
	for pause(ctx, 2*time.Second) == nil {
		s := d.scene()
		q := s.look.queue
		d.journal.say("%d accepted, %d delivered, %d refused; %d waiting, %d delayed, %d active, %d dead", s.accepted, s.tally.taken, s.tally.refused, q.Waiting, q.Delayed, q.Active, q.Dead)
	}
}

func (d *demo) scene() scene {
	l, changes := d.watch.latest()
	return scene{
		elapsed: time.Since(d.journal.begun), store: d.store.name, look: l, changes: changes, gone: d.herd.killed(),
		accepted: d.feeder.accepted(), tally: d.receiver.counts(), events: d.journal.tail(),
	}
}
