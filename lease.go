package gcslock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Lease is one acquisition of a lock, held until it is released or lost. It
// is safe for concurrent use.
type Lease struct {
	lock     *Lock
	own      ownAttempt // the create that made the object
	token    int64
	sequence int // among the leases of the same object, from 1

	ctx    context.Context
	cancel context.CancelCauseFunc

	// turn is taken by whoever sends requests about the object, one at a time.
	// A channel and no mutex, because it is held across requests.
	turn     chan struct{}
	requests int // sent in this turn, guarded by it

	telling *telling // nil where nobody observes

	refresher sync.WaitGroup // of the goroutine that refreshes, while one does

	mu         sync.Mutex // guards all below
	watchdog   *time.Timer
	automatic  bool             // refreshed without being asked
	refreshing bool             // the refresher runs
	handed     bool             // given to a caller
	taken      reading          // when it was; WithMaxHold counts from here
	began      reading          // when the first lease of the same object was handed over
	version    version          // after the last write that was acknowledged or read back
	sent       reading          // before that write was sent: the validity counts from here
	wait       time.Duration    // from sent to the next refresh
	intact     bool             // all of the object's metadata are as a refresh of ours left them
	pending    []refreshAttempt // those that may have landed or may land yet
	failures   int              // refreshes that failed in a row
	failure    error            // the last failed attempt since the last success
	gone       bool             // the server showed that the object is ours no more
	err        error            // why the lease is no more, nil while it is held

	releasing  bool
	released   chan struct{} // closed when the first Release has returned
	releaseErr error         // its result, valid once released is closed
}

// newLease is a lease that no caller has yet: its context can't be seen, and
// nothing refreshes it.
func (l *Lock) newLease(ctx context.Context, own ownAttempt, v version) *Lease {
	lease := &Lease{
		lock: l, own: own, token: v.generation, sequence: 1,
		turn:    make(chan struct{}, 1),
		version: v, sent: own.sent,
		released: make(chan struct{}),
	}
	if l.observed() {
		lease.telling = &telling{}
	}
	lease.ctx, lease.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return lease
}

// handOver marks the moment from which the lease is a caller's.
func (l *Lease) handOver() {
	now := l.lock.clock.now()
	l.mu.Lock()
	l.handed, l.taken = true, now
	if l.sequence == 1 {
		l.began = now
	}
	l.mu.Unlock()
	l.lock.log(l.ctx, levelInfo, "lock acquired", l.token)
	l.tellAcquired()
}

// Context is cancelled when the lease is lost or released. After a loss
// [context.Cause] is an error that is [ErrLockAbandoned]; after a release one
// that is [ErrNotHeld]. It has the values of the context that the lease was
// acquired with, not its cancellation or deadline.
//
// The cancellation comes from a timer, not from a reply: it comes also when
// the network is dead. In a process that was suspended it comes up to a tenth
// of the ttl after it goes on; [Lease.Err] tells at once.
func (l *Lease) Context() context.Context { return l.ctx }

// Token is the generation of the lock object: unique to this acquisition among
// all of this object name, but for leases that were passed on, see
// [WithLocalHandoff], which have it from the first one. Compare it for equality
// only; Cloud Storage does not promise that generations increase.
func (l *Lease) Token() int64 { return l.token }

// Err is nil while the lease is held, an error that is [ErrLockAbandoned] once
// it is lost, and one that is [ErrNotHeld] once it is released. It is computed
// from the clock at the time of the call, and sends no request. That it is nil
// says nothing about the next instant: a process can be paused between this
// call and what it does because of it.
func (l *Lease) Err() error {
	now := l.lock.clock.now()
	l.mu.Lock()
	err := l.err
	over := l.over(now)
	l.mu.Unlock()
	if err == nil && over != nil {
		// A refresh that ends in between meets the same clock and agrees.
		err = l.lose(over)
	}
	return err
}

// Expires is when the lease would be lost if no refresh succeeded from now on,
// on the local clock.
func (l *Lease) Expires() time.Time {
	now := l.lock.clock.now()
	return now.wall.Add(l.remaining(now))
}

// remaining is how long the lease holds at now without another refresh.
func (l *Lease) remaining(now reading) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left(now)
}

// left is remaining, with mu held.
func (l *Lease) left(now reading) time.Duration {
	left := l.lock.validity() - now.heldSince(l.sent)
	if l.lock.limitHold && l.handed {
		left = min(left, l.lock.maxHold-now.heldSince(l.taken))
	}
	return left
}

// over is why the lease is over at now, nil if it is not. Needs mu.
func (l *Lease) over(now reading) error {
	switch {
	case l.left(now) > 0:
		return nil
	case now.heldSince(l.sent) < l.lock.validity():
		return &lossError{l.lock.url, fmt.Sprintf("held for longer than %v, the most that WithMaxHold allows", l.lock.maxHold), nil, ReasonMaxHold}
	}
	return &lossError{l.lock.url, fmt.Sprintf("not refreshed within its validity of %v", l.lock.validity()), l.failure, ReasonNotRefreshed}
}

// lose ends the lease for the given reason, unless it has ended before, and
// returns the error that it ended with.
func (l *Lease) lose(reason error) error {
	if err, first := l.end(reason); !first {
		return err
	}
	l.lock.queue.over(l)
	l.mu.Lock()
	handed := l.handed
	l.mu.Unlock()
	if handed {
		l.lock.log(l.ctx, levelWarn, "lock lost", l.token, logError(reason))
		l.tellEnd(l.ctx, reason, 0)
	}
	return reason
}

// end sets the error that the lease ends with and cancels its context, unless
// that was done before. It returns the error that stands.
func (l *Lease) end(err error) (stands error, first bool) {
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return l.err, false
	}
	l.err = err
	if l.telling != nil {
		l.telling.held = since(l.telling.acquired)
	}
	if l.watchdog != nil {
		l.watchdog.Stop()
	}
	l.mu.Unlock()
	l.cancel(err)
	return err, true
}

// lastVersion is the object's version as far as this lease knows.
func (l *Lease) lastVersion() version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}
