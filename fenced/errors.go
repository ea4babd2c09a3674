package fenced

import (
	"context"
	"errors"
)

var (
	// ErrFenced means that the lock is no longer the lease's: it was lost or
	// released, or the server showed another holder's. Nothing is written
	// through this [Object] any more. It is also the lease's error,
	// [gcslock.ErrLockAbandoned] or [gcslock.ErrNotHeld].
	ErrFenced = errors.New("fenced: the lock is no longer held")

	// ErrConflict means that the object was changed by something that does not
	// hold the lock, and nothing was overwritten. Every later call on the same
	// [Object] says the same; [Open] takes the object over as it is.
	ErrConflict = errors.New("fenced: the state was changed from outside")

	// ErrUncertain is there beside another error where a write may have been
	// done, or may be done yet, because a reply of it was lost and nothing told
	// since. Without it a write that returned an error was not done, and will
	// not be.
	ErrUncertain = errors.New("fenced: whether the write was done is not known")
)

// A failure is the error of one call.
type failure struct {
	op, url   string
	kind      error // ErrFenced or ErrConflict, nil if neither
	uncertain bool
	cause     error // may be nil for ErrConflict
	detail    string
}

func (e *failure) Error() string {
	text := "fenced: " + e.op + " " + e.url + ": "
	switch e.kind {
	case ErrFenced:
		text += "refused, the lock is no longer held: " + e.cause.Error()
	case ErrConflict:
		text += "refused, because the object " + e.detail + " by something that does not hold the lock; open it again to go on from what it is now"
	default:
		text += e.cause.Error()
	}
	if e.uncertain {
		text += "; whether this write was done before is not known, as a reply was lost: read the object to see"
	}
	return text
}

func (e *failure) Is(target error) bool {
	return e.kind != nil && target == e.kind || e.uncertain && target == ErrUncertain
}

func (e *failure) Unwrap() error { return e.cause }

// An ended is the end of the caller's context, with what failed last.
type ended struct{ context, last error }

func (e *ended) Error() string {
	if e.last == nil {
		return e.context.Error()
	}
	return e.context.Error() + "; last failure: " + e.last.Error()
}

func (e *ended) Unwrap() []error {
	if e.last == nil {
		return []error{e.context}
	}
	return []error{e.context, e.last}
}

// endOf is the end of ctx as an error of a call.
func endOf(ctx context.Context, last error) error { return &ended{ctx.Err(), last} }
