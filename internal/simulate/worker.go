package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gcslock/gcslock"
)

// A worker is a goroutine of a client's that wants the lock. The workers of one
// client share its process and its Lock.
type worker struct {
	*client
	dice    *dice
	waiting time.Time       // since when it has been waiting, zero if it is not; guarded by world.mu
	queued  context.Context // that of its Acquire or Do while it waits; guarded by world.mu
}

// hire gives the client its workers, from dice of their own, so that the schedules
// with one each stay as they were.
func (c *client) hire() {
	d := newDice(c.world.seed, uint64(c.machine.name[0]-'a')+2001)
	c.workers = []*worker{{client: c, dice: c.dice}}
	if c.form == callerDriven || !d.chance(0.15) {
		return // that form has one lease in a Lock
	}
	for range 1 + d.pick(3) {
		c.workers = append(c.workers, &worker{client: c, dice: newDice(d.pcg.Uint64(), 0)})
	}
	if d.chance(0.7) {
		c.passes = true
		c.options = append(c.options, gcslock.WithLocalHandoff(1+d.pick(5), d.between(time.Second, 20*time.Second)))
	}
}

// run goes through sections of one process until none is left.
func (c *worker) run(p *process, l *gcslock.Lock, left *atomic.Int64) {
	c.part()
	for left.Load() > 0 && p.ctx.Err() == nil {
		if c.section(p, l) {
			left.Add(-1)
		}
		rest(p.ctx, c.dice.below(time.Second))
	}
}

// part has workers that one event has woken go on at instants of their own, so that
// their order is the seed's.
func (c *worker) part() {
	if len(c.workers) > 1 {
		time.Sleep(c.dice.below(time.Microsecond))
	}
}

// checkOrder: nobody gets the lock before one who waits longer through the same Lock.
// Needs mu.
func (w *world) checkOrder(by *worker, p *process) {
	if by.queued == nil {
		return // a TryAcquire does not queue
	}
	for _, other := range by.workers {
		if other.queued != nil && other.queued.Err() == nil && other.waiting.Before(by.waiting) {
			w.violate("%s: a worker who came at %v got the lock before one who came at %v",
				p.name, by.waiting.Sub(w.began), other.waiting.Sub(w.began))
		}
	}
}
