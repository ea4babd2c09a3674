package gcslock

import (
	"context"
	"time"
)

// WithLocalHandoff lets a lease that is released pass the lock object on to the
// next goroutine that waits in Acquire or Do of the same [Lock], without a request,
// instead of deleting it: up to most times in a row, and only until d has passed
// since the object was created. Then it is deleted, and other processes have their
// chance before this one comes again. Off by default: each acquisition is then a
// create and a delete, which Cloud Storage takes about once in two seconds for one
// object.
//
// All leases of such a run have the same [Lease.Token]. [Lease.Sequence] tells
// them apart.
func WithLocalHandoff(most int, d time.Duration) Option {
	return optionFunc(func(s *settings) { s.handoff, s.mostHandoffs, s.handoffTime = true, most, d })
}

func (s *settings) checkHandoff(bad *problems) {
	if s.handoff && (s.mostHandoffs <= 0 || s.handoffTime <= 0) {
		bad.addf("%d hand-offs within %v are not both positive", s.mostHandoffs, s.handoffTime)
	}
}

// A tenure is a held lock object on its way from one lease to the next.
type tenure struct {
	own      ownAttempt
	version  version
	sent     reading
	pending  []refreshAttempt
	sequence int // of the next lease
}

// passOn gives the object of a lease that was held to the end to the next one in
// the queue, and tells whether it did. The lease has ended, and the caller has its
// turn for good: nothing of it is under way but what pending tells.
func (l *Lease) passOn(ctx context.Context) bool {
	s := &l.lock.settings
	if !s.handoff || l.sequence > s.mostHandoffs {
		return false
	}
	now := l.lock.clock.now()
	l.mu.Lock()
	t := tenure{l.own, l.version, l.sent, l.pending, l.sequence + 1}
	l.mu.Unlock()
	// As in settle: not one that is nearly used up.
	fit := s.validity()-now.heldSince(t.sent) >= s.refreshInterval
	if !fit || now.heldSince(l.own.sent) >= s.handoffTime || !l.lock.queue.pass(t) {
		return false
	}
	l.lock.log(ctx, levelInfo, "lock passed on", l.token)
	return true
}

// succeed makes the next lease.
func (a *acquisition) succeed(ctx context.Context, t tenure) *Lease {
	lease := a.newLease(ctx, t.own, t.version)
	lease.sent, lease.pending, lease.sequence = t.sent, t.pending, t.sequence
	return lease
}

// await tells which lease of this Lock to wait for, nil if there is none, and
// offers to take its object over.
func (q *queue) await() (*Lease, chan tenure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lease == nil {
		return nil, nil
	}
	q.taker = make(chan tenure, 1)
	return q.lease, q.taker
}

// pass gives the object to who has offered to take it, if anybody has.
func (q *queue) pass(t tenure) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taker == nil {
		return false
	}
	q.taker <- t // it has room for one
	q.taker = nil
	return true
}

// withdraw takes the offer back, or what came of it.
func (q *queue) withdraw(passed chan tenure) (t tenure, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taker = nil
	select {
	case t = <-passed:
		return t, true
	default:
		return tenure{}, false
	}
}

// Sequence is 1 for the lease whose acquisition created the lock object, and one
// more with each lease that it was passed on to, see [WithLocalHandoff].
func (l *Lease) Sequence() int { return l.sequence }

// info is what is known of this lease's object without asking.
func (l *Lease) info() Info {
	l.mu.Lock()
	obj := stored{version: l.version, metadata: l.lock.newMetadata(l.own, "", l.sent)}
	expires := l.sent.wall.Add(l.lock.ttl)
	l.mu.Unlock()
	info := l.lock.info(obj, l.lock.clock.now())
	info.ExpiresAt, info.Stale = expires.UTC(), false
	return info
}
