package gcslock

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrLockAbandoned means that a lease is lost: its validity ran out before
	// a refresh succeeded, somebody deleted or replaced its object, or it was
	// held for longer than [WithMaxHold] allows. The same error, with the
	// details, is the cause of the lease's cancelled context and the result of
	// Refresh and Release. Loss is final for that lease. Stop the work.
	ErrLockAbandoned = errors.New("gcslock: lock abandoned")

	// ErrLocked means that somebody else holds the lock. The error that says
	// so is a [*HeldError], which tells who.
	ErrLocked = errors.New("gcslock: locked")

	// ErrNotHeld means that there is nothing to look at, break or refresh: the
	// lock object does not exist, or the lease has been released.
	ErrNotHeld = errors.New("gcslock: not held")
)

// A HeldError tells who holds a lock that could not be had. It is [ErrLocked].
// Where a wait ended it also is the context's error ([context.Canceled] or
// [context.DeadlineExceeded]).
type HeldError struct {
	// Holder is what the server last said of the lock object. Only Bucket and
	// Object are set where the object could not be read, because it changed
	// hands too quickly.
	Holder Info

	ended error // the context's error, where a wait ended
	last  error // the last failed request, where one preceded the end
}

func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gcslock: %s is locked%s", e.Holder.URL(), e.Holder.describe())
	if e.ended != nil {
		fmt.Fprintf(&b, "; the wait ended: %v", e.ended)
	}
	if e.last != nil {
		fmt.Fprintf(&b, "; last failure: %v", e.last)
	}
	return b.String()
}

// Is makes the error [ErrLocked].
func (e *HeldError) Is(target error) bool { return target == ErrLocked }

// Unwrap gives the context's error and the last failed request, where there
// were any.
func (e *HeldError) Unwrap() []error { return present(e.ended, e.last) }

// A lossError is ErrLockAbandoned with the lock's name, the reason and the
// failure behind it.
type lossError struct {
	url    string
	reason string
	cause  error  // may be nil
	why    Reason // for an observer
}

func (e *lossError) Error() string {
	text := fmt.Sprintf("gcslock: lock %s abandoned: %s", e.url, e.reason)
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *lossError) Is(target error) bool { return target == ErrLockAbandoned }
func (e *lossError) Unwrap() error        { return e.cause }

// An endedError is ErrNotHeld for a lease that its holder has released. It is
// the cause of that lease's context, too.
type endedError struct{ url string }

func (e *endedError) Error() string {
	return fmt.Sprintf("gcslock: the lease on %s has been released", e.url)
}
func (e *endedError) Is(target error) bool { return target == ErrNotHeld }

// A releaseError says that the lock object could not be deleted, and what that
// means for those who wait for it.
type releaseError struct {
	url   string
	until time.Time
	cause error
}

func (e *releaseError) Error() string {
	return fmt.Sprintf("gcslock: release %s: the lock object may still be there; others wait until about %s unless it is removed: %v",
		e.url, e.until.UTC().Format(time.RFC3339), e.cause)
}
func (e *releaseError) Unwrap() error { return e.cause }

// present drops the nil errors.
func present(errs ...error) []error {
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}
