package gcslock

import (
	"context"
	"time"
)

// WithLocalHandoff has a lease that is released pass its lock object on to the next
// goroutine that waits in Acquire or Do of the same [Lock], without a request,
// instead of deleting it: up to most times in a row, and only until d has passed
// since the first lease of such a run was acquired. Then the object is deleted, and
// other processes have their chance. Off by default: each acquisition is a create
// and a delete then, of which Cloud Storage takes about one a second for one object.
//
// All leases of a run have the same [Lease.Token], and each ends before the next one
// begins; [Lease.Sequence] numbers them. Whoever fences writes with the token has to
// compare both: equal tokens, and a sequence that does not go back. Package fenced
// does. A run goes on under the object that its first lease made, with the
// acquired-at of that one and one ttl from the last refresh; what keeps a lease
// from being passed on is less than a refresh interval of its validity left, or its
// loss: then the next one goes to the bucket. [WithMaxHold] counts for each lease by
// itself. A release that passes the lock on does not ask whether its object is still
// there; the next lease's refreshes, [Lease.Verify] and release do.
//
// In a process that always has somebody waiting, others get in between two runs
// alone. After a run the Lock pauses for an eighth of what it lasted, up to a second,
// and where it had to wait for others, for more than half of that wait. A waiter in
// another process may miss that pause, and be kept out for some runs: choose d by how
// long others may be kept waiting.
func WithLocalHandoff(most int, d time.Duration) Option {
	return optionFunc(func(s *settings) { s.handsOff, s.mostHandoffs, s.handoffTime = true, most, d })
}

func (s *settings) checkHandoff(bad *problems) {
	if s.handsOff && (s.mostHandoffs <= 0 || s.handoffTime <= 0) {
		bad.addf("%d hand-offs within %v are not both positive", s.mostHandoffs, s.handoffTime)
	}
}

// A tenure is a held lock object on its way from one lease to the next.
type tenure struct {
	own      ownAttempt
	version  version
	sent     reading
	pending  []refreshAttempt
	began    reading
	sequence int // of the next lease
}

// passOn gives the object of a lease that was held to the end to the next in the
// queue, and tells whether it did. The lease has ended, and its turn is the
// caller's for good: nothing is under way for it but what pending tells.
func (l *Lease) passOn(ctx context.Context) bool {
	s := &l.lock.settings
	if !s.handsOff || l.sequence > s.mostHandoffs {
		return false
	}
	now := l.lock.clock.now()
	l.mu.Lock()
	t := tenure{l.own, l.version, l.sent, l.pending, l.began, l.sequence + 1}
	l.mu.Unlock()
	if now.heldSince(t.began) >= s.handoffTime {
		return false
	}
	// As in settle: none that is nearly used up.
	if s.validity()-now.heldSince(t.sent) < s.refreshInterval || !l.lock.queue.pass(l, t, l.info()) {
		return false
	}
	l.lock.log(ctx, levelInfo, "lock passed on", l.token)
	return true
}

// succeed makes the next lease. It is settled as any other is: the process may have
// been stopped on the way.
func (a *acquisition) succeed(ctx context.Context, t tenure) *Lease {
	lease := a.newLease(ctx, t.own, t.version)
	lease.sent, lease.pending, lease.began, lease.sequence = t.sent, t.pending, t.began, t.sequence
	return lease
}

// Sequence is 1 for the lease whose acquisition created the lock object, and one
// more for each to which it was passed on, see [WithLocalHandoff].
func (l *Lease) Sequence() int { return l.sequence }
