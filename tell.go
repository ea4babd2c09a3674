package gcslock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// observed tells whether there is anybody to tell.
func (s *settings) observed() bool { return len(s.observers) > 0 }

func (s *settings) checkObservers() error {
	if slices.Contains(s.observers, nil) {
		return errors.New("observer is nil")
	}
	return nil
}

// beginning is the time for an event's duration, zero where nobody observes. Not
// by the lock's clock: no judgement depends on it.
func (s *settings) beginning() time.Time {
	if !s.observed() {
		return time.Time{}
	}
	return time.Now()
}

// since is the duration from such a beginning.
func since(began time.Time) time.Duration {
	if began.IsZero() {
		return 0
	}
	return time.Since(began)
}

// observe tells all observers.
func (l *Lock) observe(ctx context.Context, e Event) {
	e.Bucket, e.Object = l.bucket, l.object
	// What exports with ctx must do so after a cancellation, too.
	ctx = context.WithoutCancel(ctx)
	for _, o := range l.observers {
		o.Observe(ctx, e)
	}
}

// tell is observe for what happens on the way to a lease.
func (a *acquisition) tell(ctx context.Context, e Event) {
	e.Duration, e.Attempts = since(a.began), a.requests
	if e.Kind != EventAcquireFailed {
		holder := a.holder
		e.Holder = &holder
	}
	a.observe(ctx, e)
}

// meets tells of a holder, once for each that the acquisition meets.
func (a *acquisition) meets(ctx context.Context, generation int64) {
	if a.observed() && a.met != generation {
		a.met = generation
		a.tell(ctx, Event{Kind: EventContended})
	}
}

// A telling is one lease's events on the way to the observers. They are queued
// so that they stay in order with no mutex held while the observers are called: a
// loss can come while another goroutine is in the middle of telling of a refresh,
// and that one tells of the loss, too.
type telling struct {
	asked    time.Time     // when the acquisition began
	acquired time.Time     // when the lease was handed over
	held     time.Duration // from then to its end, guarded by the lease's mu

	mu    sync.Mutex // guards the rest
	queue []untold
	busy  bool // somebody empties the queue
	ended bool // the end is in the queue, or was
}

type untold struct {
	ctx   context.Context
	event Event
}

// tell has the observers told of an event of the lease, unless its end has been
// told.
func (l *Lease) tell(ctx context.Context, e Event) {
	if l.telling == nil {
		return
	}
	e.Token, e.Sequence = l.token, l.sequence
	t := l.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = e.Kind == EventLost || e.Kind == EventReleased
	t.queue = append(t.queue, untold{ctx, e})
	if t.busy {
		return
	}
	t.busy = true
	defer func() { t.busy = false }() // after a panic, too
	for len(t.queue) > 0 {
		next := t.queue[0]
		t.queue = slices.Delete(t.queue, 0, 1)
		t.call(l.lock, next)
	}
}

// call tells the observers with mu, which its caller holds, unlocked meanwhile.
func (t *telling) call(l *Lock, next untold) {
	t.mu.Unlock()
	defer t.mu.Lock()
	l.observe(next.ctx, next.event)
}

// tellAcquired tells that the lease is a caller's. Nobody else has it yet.
func (l *Lease) tellAcquired() {
	if l.telling != nil {
		l.telling.acquired = time.Now()
		l.tell(l.ctx, Event{Kind: EventAcquired, Duration: since(l.telling.asked), Attempts: l.requests})
	}
}

// tellRefresh tells what a refresh came to. The caller has the turn.
func (l *Lease) tellRefresh(ctx context.Context, kind EventKind, began time.Time, err error) {
	l.tell(ctx, Event{Kind: kind, Duration: since(began), Attempts: l.requests, Err: err})
}

// tellEnd tells of the end of a lease that has been handed over: of a loss, or
// of what a release came to.
func (l *Lease) tellEnd(ctx context.Context, err error, requests int) {
	if l.telling == nil {
		return
	}
	e := Event{Kind: EventReleased, Attempts: requests, Err: err}
	var loss *lossError
	if errors.As(err, &loss) {
		e.Kind, e.Reason = EventLost, loss.why
	}
	l.mu.Lock()
	e.Duration = l.telling.held
	l.mu.Unlock()
	l.tell(ctx, e)
}
