package gcslock

import (
	"context"
	"time"
)

// An Observer is told what happens to a lock and its leases, see [WithObserver].
//
// It has one method, and not one for each kind of event, so that a kind or a
// field that is added later breaks nobody's observer: ignore the kinds that you
// do not know.
type Observer interface {
	// Observe is told of one event. ctx has the values of the context of the
	// call that the event belongs to, such as a trace span; for what a timer or
	// the refresher brings about, those of the context that the lease was
	// acquired with. It never ends.
	Observe(ctx context.Context, e Event)
}

// An ObserverFunc is a function that is an [Observer].
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls the function.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// An EventKind says what happened. More kinds may be added.
type EventKind string

// What happens. docs/observability.md has a table of the fields that each kind
// has.
const (
	// EventContended: an acquisition found the lock held by somebody else. Once
	// for each holder that it meets, not at each look. One that waits behind others
	// of the same Lock meets nobody until it is its turn.
	EventContended EventKind = "contended"
	// EventTakenOver: an acquisition deleted a stale lock object, of a Holder
	// that is gone, for a Reason. It does not have the lock yet.
	EventTakenOver EventKind = "taken_over"
	// EventAcquired: an acquisition has the lock. It is the first event of its
	// lease, which has exactly one end, EventLost or EventReleased.
	EventAcquired EventKind = "acquired"
	// EventAcquireFailed: an acquisition ended without the lock, and Err is what
	// it returned. A TryAcquire that finds the lock held is one.
	EventAcquireFailed EventKind = "acquire_failed"
	// EventRefreshed: a refresh succeeded, automatic or not.
	EventRefreshed EventKind = "refreshed"
	// EventRefreshFailed: a refresh failed in all its attempts, which leaves the
	// lease as valid as it was. One that finds the lease lost, or is cut short
	// by its end, is not told.
	EventRefreshFailed EventKind = "refresh_failed"
	// EventLost: the lease is lost, for a Reason, and Err is its
	// [ErrLockAbandoned]. The lease's context has been cancelled before.
	EventLost EventKind = "lost"
	// EventReleased: the holder has given the lease up. Err is set where the
	// object could not be deleted, so that others wait for its ttl. Where it was
	// passed on, see [WithLocalHandoff], no request was sent.
	EventReleased EventKind = "released"
)

// A Reason is why a lock was taken over or a lease was lost. The few values suit
// a metric's attribute; the words for people are in Err and in the log.
type Reason string

// Why a lock was taken over.
const (
	// ReasonExpired: its ttl was over by the server's clock.
	ReasonExpired Reason = "expired"
	// ReasonUnchanged: it had been watched unchanged for its whole ttl.
	ReasonUnchanged Reason = "unchanged"
	// ReasonReclaimed: it carried our own owner label, see [WithReclaim].
	ReasonReclaimed Reason = "reclaimed"
)

// Why a lease was lost.
const (
	// ReasonNotRefreshed: no refresh succeeded within its validity.
	ReasonNotRefreshed Reason = "not_refreshed"
	// ReasonRefreshFailures: more refreshes in a row failed than
	// [WithMaxRefreshFailures] allows.
	ReasonRefreshFailures Reason = "refresh_failures"
	// ReasonMaxHold: it was held for as long as [WithMaxHold] allows.
	ReasonMaxHold Reason = "max_hold"
	// ReasonDeleted: somebody deleted its object. Where the release found that
	// out, somebody may have put another in its place since.
	ReasonDeleted Reason = "deleted"
	// ReasonReplaced: the object is another holder's, or was locked again through
	// the same Lock in the caller-driven form.
	ReasonReplaced Reason = "replaced"
)

// An Event is one thing that happened. The fields that a kind does not have are
// zero, see docs/observability.md.
type Event struct {
	Kind EventKind

	// Bucket and Object name the lock.
	Bucket, Object string

	// Token is the lease's, see [Lease.Token]; 0 where there is no lease.
	Token int64

	// Sequence is the lease's, see [Lease.Sequence]: it tells leases apart that have
	// the same token. 0 where there is no lease. The end of a lease that was passed
	// on may be told after the beginning of the next.
	Sequence int

	// Duration is how long it took, or what went before: the wait of an
	// acquisition so far, a refresh with all its attempts, the hold of a lease
	// that has ended, without its release. By the monotonic clock, which on
	// Linux stands still in suspend.
	Duration time.Duration

	// Attempts is how many requests were sent for it: of an acquisition so far,
	// of a refresh, of a release.
	Attempts int

	// Reason is why a lock was taken over or lost.
	Reason Reason

	// Holder is who holds the lock, or held the one that was taken over. Others
	// see it, too: don't change it. Its texts are a stranger's: quote them.
	Holder *Info

	// Err is the failure behind it.
	Err error
}

// WithObserver has o told of what happens to the lock and its leases: for
// metrics and traces, see package otelgcslock, and for tests. It can be given
// several times; each observer is told, in the order of the options.
//
// Observe is called by the goroutine that brought the event about: a caller's,
// the refresher, or a timer. Several may call at once, but the events of one
// lease come one at a time and in order, the first is [EventAcquired], and nothing
// follows the one end. Of a process that crashes nothing is told; and in the
// caller-driven form, which has no timer, a loss is told when a call finds it.
//
// Observe must return soon, because whoever calls it waits: an Acquire, a
// Release, the next refresh. One that blocks costs the lease, but never its
// safety: the validity ends on time, and the context is cancelled before
// EventLost is told. No mutex of this package is held meanwhile, so that Err,
// Expires, Token and Context of any lease may be called; Refresh and Release of
// the lease whose event it is may not, they would wait for it. A panic in Observe
// is its caller's, which ends the program if that is the refresher or a timer.
//
// Without an observer no clock is read and nothing is allocated for it.
func WithObserver(o Observer) Option {
	return optionFunc(func(s *settings) { s.observers = append(s.observers, o) })
}
