package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

const (
	minTTL = 3 * time.Second
	maxTTL = 15 * time.Second
)

// A client wants the lock several times. Its process may crash; the next one
// goes on with the remaining sections under the same name.
type client struct {
	world   *world
	machine *machine
	dice    *dice

	ttl     time.Duration
	manual  bool // refreshes by itself
	reclaim bool
	maxHold time.Duration // 0: none
	options []gcslock.Option

	process *process  // guarded by world.mu, as the rest
	cut     time.Time // no request gets through until then
	waiting time.Time // since when it has been waiting, zero if it is not
}

func newClient(w *world, i int) *client {
	d := newDice(w.seed, uint64(i)+1)
	name := string(rune('a' + i))
	c := &client{
		world: w, machine: newMachine(w, name, d), dice: d,
		ttl:     d.between(minTTL, maxTTL),
		manual:  d.chance(0.15),
		reclaim: d.chance(0.3),
	}
	c.options = []gcslock.Option{
		gcslock.WithOwner(name), gcslock.WithTTL(c.ttl),
		gcslock.WithLogger(slog.New(observer{w})),
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
	if d.chance(0.7) {
		// Fewer looks, so that a second of computing has more schedules.
		c.options = append(c.options, gcslock.WithWait(400*time.Millisecond, 3*time.Second))
	}
	return c
}

func (p *process) name() string {
	if p == nil {
		return "human"
	}
	if p.client == nil {
		return "older"
	}
	return fmt.Sprintf("%s/%d", p.client.machine.name, p.incarnation)
}

// cutOff tells whether the network lets nothing through.
func (c *client) cutOff() bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return time.Now().Before(c.cut)
}

// start begins a process.
func (c *client) start(ctx context.Context, incarnation int) *process {
	p := &process{client: c, incarnation: incarnation}
	p.ctx, p.stop = context.WithCancel(ctx)
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.process = p
	return p
}

// bucket is never sent anything: the lock's store is replaced.
var bucket = new(storage.Client).Bucket("simulated")

func (c *client) lock(p *process) *gcslock.Lock {
	l, err := gcslock.New(bucket, "lock", c.options...)
	if err != nil {
		panic(err) // the plan is wrong
	}
	replace(l, inside.Seams{Store: p, Now: c.machine.now, Random: c.machine.fate.random})
	return l
}

// run goes through the sections, in one process after the other.
func (c *client) run(ctx context.Context) {
	left := c.world.plan.sections
	for incarnation := 1; left > 0 && ctx.Err() == nil; incarnation++ {
		p := c.start(ctx, incarnation)
		for l := c.lock(p); left > 0 && p.ctx.Err() == nil; {
			if c.section(p, l) {
				left--
			}
			rest(p.ctx, c.dice.below(time.Second))
		}
		p.stop()
		rest(ctx, c.dice.below(3*time.Second))
	}
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.process = nil
}

// section gets the lock, works, and gives it back. It is false if it did not
// come to that.
func (c *client) section(p *process, l *gcslock.Lock) bool {
	lease := c.acquire(p, l)
	if lease == nil {
		return false
	}
	if p.dead.Load() {
		// Won just as the process crashed: nobody has it.
		crash(lease, errDead)
		return false
	}
	t := c.world.took(p, lease, c.ttl)
	c.work(p, lease)
	if p.dead.Load() {
		crash(lease, errDead)
		c.world.gave(t, errDead)
		return true
	}
	c.machine.gate()
	cause := context.Cause(lease.Context())
	err := lease.Release(context.Background())
	if p.dead.Load() {
		err = errDead
	} else if cause != nil && !errors.Is(err, gcslock.ErrLockAbandoned) {
		c.world.mu.Lock()
		c.world.violate("%s lost the lock (%v), and its release said %v", p.name(), cause, err)
		c.world.mu.Unlock()
	}
	c.world.gave(t, err)
	return true
}

// acquire waits for the lock, now and then impatiently.
func (c *client) acquire(p *process, l *gcslock.Lock) *gcslock.Lease {
	ctx, cancel := p.ctx, context.CancelFunc(func() {})
	patient := c.world.calm() || c.dice.chance(0.7)
	if !patient {
		ctx, cancel = context.WithTimeout(ctx, c.dice.below(10*time.Second))
	}
	defer cancel()
	c.wait(time.Now())
	defer c.wait(time.Time{})
	var lease *gcslock.Lease
	var err error
	if !patient && c.dice.chance(0.3) {
		lease, err = l.TryAcquire(ctx)
	} else {
		lease, err = l.Acquire(ctx)
	}
	if err != nil {
		c.world.log(p.name(), err.Error(), 0, 0)
		return nil
	}
	return lease
}

func (c *client) wait(since time.Time) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.waiting = since
}

// work lasts as long as it does, or until the lease or the process ends.
func (c *client) work(p *process, lease *gcslock.Lease) {
	long := 300 * time.Millisecond
	if c.dice.chance(0.3) {
		long = max(2*c.ttl, c.world.plan.hold)
	}
	ctx, cancel := context.WithTimeout(p.ctx, c.dice.below(long))
	defer cancel()
	defer context.AfterFunc(lease.Context(), cancel)()
	for rest(ctx, c.ttl/3) {
		if c.manual {
			// What it comes to is checked from the lease itself.
			_ = lease.Refresh(ctx)
		}
	}
}

// observer counts what the library reports.
type observer struct{ world *world }

func (o observer) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (o observer) WithAttrs([]slog.Attr) slog.Handler               { return o }
func (o observer) WithGroup(string) slog.Handler                    { return o }

func (o observer) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "lock lost" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "generation" {
			o.world.mu.Lock()
			defer o.world.mu.Unlock()
			o.world.losses[a.Value.Int64()]++
		}
		return true
	})
	return nil
}
