package gcslock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A queue orders those of one process that wait for a lock through the same Lock:
// whoever came first goes first, and alone talks to the bucket. The rest send
// nothing.
type queue struct {
	mu     sync.Mutex      // guards the rest
	taken  bool            // somebody has the turn
	next   []chan struct{} // of those who wait for it, closed to pass it on
	lease  *Lease          // the last one that was won through this Lock; nil once it is over
	taker  chan tenure     // of who has the turn and waits for lease to end; nil if nobody does
	holder *Info           // who was met last
}

// enter waits for the turn. Who gets it must leave.
func (q *queue) enter(ctx context.Context) error {
	q.mu.Lock()
	if !q.taken {
		q.taken = true
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q.next = append(q.next, turn)
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	i := slices.Index(q.next, turn)
	if i >= 0 {
		q.next = slices.Delete(q.next, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 {
		q.leave() // the turn came just as ctx ended
	}
	return ctx.Err()
}

// leave passes the turn on.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken = len(q.next) > 0; q.taken {
		close(q.next[0])
		q.next = q.next[1:]
	}
}

// won notes a lease that is about to be handed over.
func (q *queue) won(l *Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lease = l
}

// over notes that the lease's object is given up, or that no more can be done
// about it.
func (q *queue) over(l *Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lease == l {
		q.lease = nil
	}
}

// meets notes who holds the lock, for those who wait for their turn.
func (q *queue) meets(holder Info) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.holder = &holder
}

// inTurn runs for the lock when it is this acquisition's turn.
func (a *acquisition) inTurn(ctx context.Context, next step) (*Lease, error) {
	if err := a.queue.enter(ctx); err != nil {
		return nil, a.gaveUpInQueue(ctx, err)
	}
	defer a.queue.leave()
	if lease := a.awaitOwn(ctx); lease != nil {
		a.queue.won(lease)
		return lease, nil
	}
	began := a.clock.now()
	if d := a.past.courtesy(began, a.maxWait); d > 0 {
		_ = sleep(ctx, d) // run sees that ctx ended
		next = stepLook
	}
	lease, err := a.run(ctx, next)
	if err == nil {
		waited := time.Duration(0)
		if a.pace.holders > 0 {
			waited = a.clock.now().watchedSince(began)
		}
		a.past.wait(waited)
	}
	return lease, err
}

// gaveUpInQueue tells what those knew who were before us.
func (a *acquisition) gaveUpInQueue(ctx context.Context, ended error) error {
	a.queue.mu.Lock()
	lease, holder := a.queue.lease, a.queue.holder
	a.queue.mu.Unlock()
	switch {
	case lease != nil && lease.Err() == nil:
		a.locked, a.holder = true, lease.info()
	case holder != nil:
		a.locked, a.holder = true, *holder
	}
	return a.gaveUp(ctx, ended)
}

// awaitOwn waits until a lease is over that was won through the same Lock: no
// request tells more about it than we know. It returns that lease's successor if
// the lock object was passed on. One that was lost is not waited for, it is the
// bucket's again to say who holds the lock; nor, with WithReclaim, one that is to
// be taken over.
func (a *acquisition) awaitOwn(ctx context.Context) *Lease {
	for !a.reclaim && ctx.Err() == nil {
		lease, passed := a.queue.await()
		if lease == nil {
			return nil
		}
		ended := lease.ctx.Done()
		switch err := lease.Err(); {
		case errors.Is(err, ErrLockAbandoned):
			a.queue.withdraw(passed)
			return nil
		case err != nil:
			ended = lease.released
		default:
			a.locked, a.holder = true, lease.info()
			a.log(ctx, levelDebug, "locked by another", lease.token, logHolder(a.holder))
			a.meets(ctx, lease.token)
		}
		over := time.NewTimer(lease.remaining(a.clock.now()))
		select {
		case <-ended:
		case <-ctx.Done():
		case <-over.C: // of the caller-driven form, which has no watchdog
		case t := <-passed:
			passed <- t
		}
		over.Stop()
		if t, ok := a.queue.withdraw(passed); ok {
			// Also if ctx ended just then: the object is ours.
			return a.succeed(ctx, t)
		}
	}
	return nil
}
