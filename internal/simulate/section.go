package main

import (
	"context"
	"time"

	"github.com/gcslock/gcslock"
)

// A form is one of the ways in which the library is used.
type form int

const (
	leases       form = iota // Acquire or TryAcquire, and Release
	do                       // Do
	callerDriven             // Lock, RefreshLock, Unlock
	forms
)

func (f form) String() string { return [...]string{"leases", "do", "caller-driven"}[f] }

// section gets the lock, works, and gives it back. It is false if it did not
// come to that.
func (c *worker) section(p *process, l *gcslock.Lock) bool {
	// The context of a Do may end its work in the calm, too; it ends nothing else.
	patient := c.form != do && c.world.calm() || c.dice.chance(0.7)
	limit := c.dice.below(10 * time.Second)
	base := context.WithValue(p.ctx, toldKey{}, new(told))
	ctx, cancel := base, context.CancelFunc(func() {})
	if !patient {
		ctx, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	var t *tenure
	var err error
	try := c.form == leases && !patient && c.dice.chance(0.3)
	if try {
		c.wait(time.Now(), nil)
	} else {
		c.wait(time.Now(), ctx)
	}
	switch c.form {
	case leases:
		t, err = c.withLease(ctx, p, l, try)
	case do:
		t, err = c.withDo(ctx, p, l)
	case callerDriven:
		if patient {
			limit = time.Hour
		}
		t, err = c.withoutLease(base, p, l, limit)
	}
	c.wait(time.Time{}, nil)
	if t == nil {
		if err != nil {
			c.world.log(p.name, err.Error(), 0, 0)
		}
		return false
	}
	if p.dead.Load() {
		err = errDead
	}
	c.world.gave(t, err)
	return true
}

// wait notes since when the worker waits for the lock, zero if it does not, and the
// context of that wait if it is in a queue.
func (c *worker) wait(since time.Time, queued context.Context) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.waiting, c.queued = since, queued
}

// withLease is a section with Acquire or TryAcquire.
func (c *worker) withLease(ctx context.Context, p *process, l *gcslock.Lock, try bool) (*tenure, error) {
	acquire := l.Acquire
	if try {
		acquire = l.TryAcquire
	}
	lease, err := acquire(ctx)
	if err != nil {
		c.part()
		return nil, err
	}
	t := c.hold(p.ctx, p, lease, lease.Refresh)
	if t == nil || p.dead.Load() {
		return t, errDead
	}
	return t, lease.Release(context.WithoutCancel(ctx))
}

// withDo is a section with Do. Its context governs the work, too.
func (c *worker) withDo(ctx context.Context, p *process, l *gcslock.Lock) (*tenure, error) {
	var t *tenure
	err := l.Do(ctx, func(work context.Context, lease *gcslock.Lease) error {
		t = c.hold(work, p, lease, lease.Refresh)
		return nil
	})
	if t == nil {
		c.part()
	}
	return t, err
}

// withoutLease is a section of the caller-driven form.
func (c *worker) withoutLease(base context.Context, p *process, l *gcslock.Lock, limit time.Duration) (*tenure, error) {
	if err := l.Lock(base, limit); err != nil {
		return nil, err
	}
	t := c.hold(p.ctx, p, current(l), l.RefreshLock)
	if t == nil || p.dead.Load() {
		return t, errDead
	}
	return t, l.Unlock(context.WithoutCancel(base))
}

// hold is what lies between the acquisition and the release. The tenure is nil
// if the process crashed just as it won: then nobody has the lock.
func (c *worker) hold(ctx context.Context, p *process, lease *gcslock.Lease, refresh func(context.Context) error) *tenure {
	c.part()
	if p.dead.Load() {
		crash(lease, errDead)
		return nil
	}
	t := c.world.took(c, p, lease)
	c.work(ctx, lease, refresh)
	if p.dead.Load() {
		crash(lease, errDead)
		return t
	}
	c.machine.gate()
	t.cause, t.gaveBack = context.Cause(lease.Context()), time.Now()
	return t
}

// work lasts as long as it does, or until the lease or the process ends.
func (c *worker) work(ctx context.Context, lease *gcslock.Lease, refresh func(context.Context) error) {
	long := 300 * time.Millisecond
	if c.dice.chance(0.3) {
		long = max(2*c.ttl, c.world.plan.hold)
	}
	ctx, cancel := context.WithTimeout(ctx, c.dice.below(long))
	defer cancel()
	defer context.AfterFunc(lease.Context(), cancel)()
	for rest(ctx, c.ttl/3) {
		if c.manual || c.form == callerDriven {
			// What it comes to is checked from the lease itself.
			_ = refresh(ctx)
		}
	}
	// What ended the lease has woken its refresher at this instant, too.
	time.Sleep(c.dice.below(time.Microsecond))
}
