package gcslock

import (
	"context"
	"fmt"
)

// Verify asks the server whether the lock object is still this lease's, in one
// read request (up to three where it fails). It is nil if the object was, at some
// instant between the call and its return. [Lease.Err] tells the same from the
// local clock, for nothing; what a read adds is an object that somebody has
// deleted or broken, and an order: whatever the server had applied before the
// read was applied while the lock was this lease's. Package fenced is built on
// that.
//
// An object that is gone or another holder's is a loss, as where a refresh finds
// it: final, reported once, [ErrLockAbandoned]. A lease that is over is not asked
// for, and its [Lease.Err] is the answer: a lost lease does not come back, even if
// its object is still there. Any other error says that the server could not be
// asked, and leaves the lease as valid as it was.
//
// It renews nothing, waits for no refresh under way, and is safe for concurrent
// use.
func (l *Lease) Verify(ctx context.Context) error {
	now := l.lock.clock.now()
	if err := l.Err(); err != nil {
		return err
	}
	// Past the validity no answer counts. Where there is no watchdog, nothing
	// else ends the requests in time.
	ctx, cancel := context.WithTimeout(ctx, l.remaining(now))
	defer cancel()
	r, err := l.lock.readPatiently(ctx)
	if over := l.Err(); over != nil {
		return over
	}
	if err != nil {
		return fmt.Errorf("gcslock: verify: %w", err)
	}
	return l.stillOurs(r)
}
