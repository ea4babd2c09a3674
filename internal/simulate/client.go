package main

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

const (
	minTTL = 3 * time.Second
	maxTTL = 9 * time.Second
)

// A client wants the lock several times. Its process may crash; the next one
// goes on with the remaining sections under the same name.
type client struct {
	world   *world
	machine *machine
	dice    *dice

	ttl     time.Duration
	form    form
	manual  bool // refreshes by itself
	reclaim bool
	maxHold time.Duration // 0: none
	options []gcslock.Option
	workers []*worker // one, or several that share a Lock
	passes  bool      // its leases are passed on, WithLocalHandoff

	process *process  // guarded by world.mu, as the rest
	cut     time.Time // no request gets through until then
}

func newClient(w *world, i int) *client {
	d := newDice(w.seed, uint64(i)+1)
	name := string(rune('a' + i))
	c := &client{
		world: w, machine: newMachine(w, name, d), dice: d,
		ttl:     d.between(minTTL, maxTTL),
		form:    form(d.pick(int(forms))),
		manual:  d.chance(0.15),
		reclaim: d.chance(0.3),
	}
	c.options = []gcslock.Option{
		gcslock.WithOwner(name), gcslock.WithTTL(c.ttl),
		gcslock.WithLogger(slog.New(observer{w})), gcslock.WithObserver(telling{w}),
	}
	if c.manual {
		c.options = append(c.options, gcslock.WithManualRefresh())
	}
	if c.reclaim {
		c.options = append(c.options, gcslock.WithReclaim())
	}
	if d.chance(0.1) {
		c.maxHold = d.between(time.Second, 2*c.ttl)
		c.options = append(c.options, gcslock.WithMaxHold(c.maxHold))
	}
	if d.chance(0.1) {
		c.options = append(c.options, gcslock.WithMaxRefreshFailures(d.pick(3)))
	}
	if d.chance(0.85) {
		// Fewer looks, so that a second of computing has more schedules.
		c.options = append(c.options, gcslock.WithWait(1500*time.Millisecond, 6*time.Second))
	}
	// From dice of its own, so that the schedules without it stay as they were.
	if s := newDice(w.seed, uint64(i)+1001); s.chance(0.2) {
		pause := s.between(time.Second, 6*time.Second)
		c.options = append(c.options, gcslock.WithStandby(func(gcslock.Info) time.Duration { return pause }))
	}
	c.hire()
	return c
}

// cutOff tells whether the network lets nothing through.
func (c *client) cutOff() bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return time.Now().Before(c.cut)
}

// start begins a process.
func (c *client) start(ctx context.Context, incarnation int) *process {
	p := &process{client: c, name: c.machine.name + "/" + strconv.Itoa(incarnation)}
	p.ctx, p.stop = context.WithCancel(ctx)
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.process = p
	return p
}

const bucketName, objectName = "simulated", "lock"

// bucket is never sent anything: the lock's store is replaced.
var bucket = new(storage.Client).Bucket(bucketName)

func (c *client) lock(p *process) *gcslock.Lock {
	var l *gcslock.Lock
	bucket, seams := bucket, inside.Seams{Store: p, Now: c.machine.now, Random: c.machine.fate.random}
	if real := c.world.cloud.real; real != nil {
		bucket, seams.Store = real.bucket(p), nil
	}
	if c.form == callerDriven {
		l = gcslock.NewLock(bucket, c.machine.name, objectName, c.ttl, nil, c.options...)
	} else {
		var err error
		if l, err = gcslock.New(bucket, objectName, c.options...); err != nil {
			panic(err) // the plan is wrong
		}
	}
	replace(l, seams)
	return l
}

// run goes through the sections, in one process after the other.
func (c *client) run(ctx context.Context) {
	var left atomic.Int64
	left.Store(int64(c.world.plan.sections))
	rest(ctx, c.dice.below(100*time.Millisecond)) // all at one instant would have no order
	for incarnation := 1; left.Load() > 0 && ctx.Err() == nil; incarnation++ {
		p := c.start(ctx, incarnation)
		l := c.lock(p)
		var working sync.WaitGroup
		for _, k := range c.workers[1:] {
			working.Go(func() { k.run(p, l, &left) })
		}
		c.workers[0].run(p, l, &left)
		working.Wait()
		p.stop()
		rest(ctx, c.dice.below(3*time.Second))
	}
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.process = nil
}
