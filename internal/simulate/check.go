package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
	"github.com/gcslock/gcslock/internal/linear"
)

var (
	replace = inside.Replace.(func(*gcslock.Lock, inside.Seams))
	valid   = inside.Valid.(func(*gcslock.Lease, inside.Reading) bool)
	current = inside.Current.(func(*gcslock.Lock) *gcslock.Lease)
	crash   = inside.Crash.(func(*gcslock.Lease, error))
)

// A tenure is one lease in its holder's hands.
type tenure struct {
	process *process
	lease   *gcslock.Lease
	told    *told
	ttl     time.Duration
	broken  bool // a human or an older client removed its object: exclusion is not promised until it notices
	over    bool // has been seen invalid

	asked    time.Time // since when its holder had waited for it
	believed time.Time // when it was last seen valid
	gaveBack time.Time // when the release began
	cause    error     // why the lease had ended before its release, nil if it had not
}

// believes tells whether the holder would think that it holds the lock: if it
// is stopped, once it goes on.
func (t *tenure) believes() bool {
	return !t.process.dead.Load() && t.lease.Context().Err() == nil && valid(t.lease, t.process.client.machine.reading())
}

// checkHolders: at most one holder, and none that comes back to life. Needs mu,
// as all checks.
func (w *world) checkHolders() {
	var holder *tenure
	for _, t := range w.held {
		if !t.believes() {
			// What a stopped process believes is settled when it goes on.
			if t.process.client.machine.awakeFor() > 0 {
				t.over = true
			}
			w.checkLoss(t, context.Cause(t.lease.Context()))
			continue
		}
		t.believed = time.Now()
		if t.over {
			w.violate("%s holds again what it had lost, token %d", t.process.name, t.lease.Token())
		}
		if t.broken {
			continue
		}
		if holder != nil {
			w.violate("two holders: %s with token %d, %s with token %d",
				holder.process.name, holder.lease.Token(), t.process.name, t.lease.Token())
		}
		holder = t
	}
}

// checkLoss: a loss that is not one of time is one of the object.
func (w *world) checkLoss(t *tenure, err error) {
	if !errors.Is(err, gcslock.ErrLockAbandoned) || w.cloud.object == nil || w.cloud.object.Generation != t.lease.Token() {
		return
	}
	for _, reason := range []string{"not refreshed within", "held for longer", "failed in a row"} {
		if strings.Contains(err.Error(), reason) {
			return
		}
	}
	w.violate("%s was told of a loss that is none: %v", t.process.name, err)
}

// took notes that a process has got the lock.
func (w *world) took(by *worker, p *process, lease *gcslock.Lease) *tenure {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sections++
	if lease.Sequence() > 1 {
		w.passed++
	}
	w.logLocked(p.name, "holds", lease.Token(), 0)
	if w.runs[lease.Token()]++; lease.Sequence() != w.runs[lease.Token()] {
		w.violate("token %d was given out %d times, and this is number %d of its run", lease.Token(), w.runs[lease.Token()], lease.Sequence())
	}
	w.checkOrder(by, p)
	t := &tenure{process: p, lease: lease, told: toldOf(lease.Context()), ttl: by.ttl, asked: by.waiting}
	t.believed, by.waiting, by.queued = t.asked, time.Time{}, nil
	t.broken = w.removed[lease.Token()]
	if t.believes() && !t.broken { // and was not stopped on the way, until the lease was over
		for _, other := range w.held {
			w.checkTold(other)
		}
	}
	w.held = append(w.held, t)
	w.record(t, linear.Acquire, t.asked)
	w.idle = time.Time{}
	w.checkHolders()
	return t
}

// checkTold: a former holder that runs has had its context cancelled when
// somebody else gets in. Timers stop with the process, so one that has just
// gone on may take a tenth of the ttl. In the caller-driven form no timer runs.
func (w *world) checkTold(t *tenure) {
	if t.broken || t.process.dead.Load() || t.process.client.form == callerDriven || t.process.client.machine.awakeFor() <= t.ttl/10+t.ttl/100 {
		return
	}
	if t.lease.Context().Err() == nil {
		w.violate("%s was not told that token %d is lost", t.process.name, t.lease.Token())
	}
}

// gave notes that a process has released or lost the lock, and with which
// result.
func (w *world) gave(t *tenure, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	token := t.lease.Token()
	w.checkLoss(t, err)
	w.recordEnd(t, err)
	if err == nil {
		w.logLocked(t.process.name, "released", token, 0)
	} else {
		w.logLocked(t.process.name, err.Error(), token, 0)
	}
	for i, other := range w.held {
		if other == t {
			w.held = append(w.held[:i:i], w.held[i+1:]...)
			break
		}
	}
	want := 0
	if errors.Is(err, gcslock.ErrLockAbandoned) {
		w.lost++
		want = 1
	}
	if t.process.dead.Load() {
		return
	}
	w.checkToldEnd(idOf(t.lease), want == 1)
	switch n := t.told.losses; {
	case n != want:
		w.violate("the loss of token %d was reported %d times, want %d", token, n, want)
	case want == 0 && t.cause != nil:
		w.violate("%s lost the lock (%v), and its release said %v", t.process.name, t.cause, err)
	case want == 0 && err != nil && w.settled(20*time.Second):
		w.violate("%s could not release: %v", t.process.name, err)
	}
}

// checkChange: what a request has changed is its sender's own, or dead. Before is
// the object before the request.
func (w *world) checkChange(p *process, before *object) {
	after := w.cloud.object
	switch {
	case before == nil || after != nil && after.Version == before.Version:
	case after != nil && after.Generation == before.Generation:
		if before.creator != p {
			w.violate("%s updated the object of %s", p.name, before.creator.name)
		}
	case p.client == w.operator:
		if before.Generation != p.breaks {
			w.violate("Break of %d removed %d", p.breaks, before.Generation)
		}
		w.noteRemoved(before.Generation)
	case before.creator != p:
		w.takeovers++
		w.checkTakeover(p, before)
	}
}

// checkTakeover: what a process removes that it has not made is nobody's.
func (w *world) checkTakeover(p *process, o *object) {
	switch {
	case o.foreign():
		w.violate("%s removed a foreign object", p.name)
	case o.creator == human:
		return
	case o.creator.client == nil: // of the older format
		expires, err := time.Parse(time.RFC3339Nano, o.Metadata["expires-at"])
		if err == nil && time.Now().Before(expires) {
			w.violate("%s removed the live object of an older client", p.name)
		}
	}
	for _, t := range w.held {
		if t.lease.Token() == o.Generation && t.believes() && !t.broken {
			w.violate("%s removed the object of %s, which holds the lock", p.name, t.process.name)
		}
	}
}

// slack is how long a waiter may take to notice that the lock is free or dead:
// a pause, and requests there and back, some of them refused under the rate
// limit.
const slack = 9 * time.Second

// checkIdle: in the calm, a lock that is free or whose holder is dead finds a
// new holder, if somebody waits.
func (w *world) checkIdle() {
	if !w.settled(0) || len(w.held) > 0 {
		w.idle = time.Time{}
		return
	}
	now := time.Now()
	generation := int64(0)
	if w.cloud.object != nil {
		generation = w.cloud.object.Generation
	}
	if w.idle.IsZero() || w.idleWith != generation {
		w.idle, w.idleWith = now, generation
	}
	bound := slack
	if generation != 0 {
		// The longest ttl, on a slow clock; an older lock's expiry and allowance.
		bound += maxTTL + maxTTL/20 + 11*time.Second
	}
	for _, c := range w.clients {
		for _, k := range c.workers {
			if since := k.waiting; !since.IsZero() && now.Sub(since) > bound && now.Sub(w.idle) > bound && c.machine.awakeFor() > bound {
				w.violate("%s has waited for %v, and nobody has held the lock for %v", c.machine.name, now.Sub(since), now.Sub(w.idle))
			}
		}
	}
}

// checkEnd looks at what is left.
func (w *world) checkEnd(ctx context.Context) {
	if ctx.Err() != nil {
		w.violate("not at an end after %v", w.plan.chaos+limit)
	}
	for _, t := range w.held {
		w.violate("%s never gave token %d back", t.process.name, t.lease.Token())
	}
}
