package gcslock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/storage"
)

// A Logger is what the caller-driven form logs to, see [NewLock]. Most
// structured loggers have these two methods or are adapted in a line.
type Logger interface {
	Info(msg string, keysAndValues ...any)
	Error(err error, msg string, keysAndValues ...any)
}

// olderMaxFailures is how many refreshes in a row may fail in the
// caller-driven form, as in the older library.
const olderMaxFailures = 3

// NewLock returns a lock for the caller-driven form: [Lock.Lock],
// [Lock.RefreshLock] and [Lock.Unlock]. No goroutine and no timer runs; the
// caller refreshes, in time, and learns of a loss from it.
//
// id is the owner label. As in the older library of this design a lock object
// with the same id, compared exactly, is taken over at once, and the fourth
// refresh in a row that fails is [ErrLockAbandoned]: the options
// [WithReclaim] and [WithMaxRefreshFailures](3). opts come after these.
//
// logContext may be nil, and so may be what it returns. Input that [New] would
// refuse is refused by the first call.
func NewLock(bucket *storage.BucketHandle, id, path string, ttl time.Duration, logContext func(context.Context) Logger, opts ...Option) *Lock {
	older := []Option{WithOwner(id), WithTTL(ttl), WithReclaim(), WithMaxRefreshFailures(olderMaxFailures)}
	l := newLock(bucket, path, append(older, opts...))
	l.olderLogger = logContext
	return l
}

// Lock waits for the lock for up to timeout, or until ctx ends if that is
// earlier, in the queue of [Lock.Acquire]. With a timeout of 0 it makes one round,
// as [Lock.TryAcquire] does.
// Its errors and its cost are those of [Lock.Acquire].
//
// The lease is kept within the Lock, which can hold one of this form at a time.
// Locking again what it holds replaces the object with reclaim, as a restarted
// process would, and is refused without.
func (l *Lock) Lock(ctx context.Context, timeout time.Duration) error {
	if l.invalid != nil {
		return l.invalid
	}
	before := l.current()
	if before != nil && before.Err() == nil {
		if !l.reclaim {
			return fmt.Errorf("gcslock: lock %s: already held through this Lock", l.url)
		}
		l.queue.over(before) // it is to be replaced, not waited for
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	lease, err := l.acquire(ctx, timeout <= 0)
	if err != nil {
		return err
	}
	if before != nil {
		before.succeeded()
	}
	lease.handOver()
	l.setCurrent(lease)
	return nil
}

// RefreshLock renews the lock, with one attempt. It returns nil if the lock is
// not held; the failure as it is while the lease may still be refreshed; and
// [ErrLockAbandoned] once the lock is lost, from then on until the next call
// of Lock. One write request.
func (l *Lock) RefreshLock(ctx context.Context) error {
	if l.invalid != nil {
		return l.invalid
	}
	lease := l.current()
	if lease == nil {
		return nil
	}
	return lease.refresh(ctx, true)
}

// Unlock gives the lock up. It returns nil if the lock is not held,
// [ErrLockAbandoned] if it was held and lost, and else what [Lease.Release]
// returns. One write request.
func (l *Lock) Unlock(ctx context.Context) error {
	if l.invalid != nil {
		return l.invalid
	}
	lease := l.current()
	if lease == nil {
		return nil
	}
	err := lease.Release(ctx)
	if !errors.Is(err, ErrLockAbandoned) {
		l.setCurrent(nil)
	}
	return err
}

// succeeded ends a lease that was replaced by locking again. That was asked for,
// so that it is told, and not warned of.
func (l *Lease) succeeded() {
	loss := &lossError{l.lock.url, "it was locked again through the same Lock", nil, ReasonReplaced}
	l.lock.queue.over(l)
	if _, first := l.end(loss); first {
		l.tellEnd(l.ctx, loss, 0)
	}
}

func (l *Lock) current() *Lease {
	l.manualMu.Lock()
	defer l.manualMu.Unlock()
	return l.manualLease
}

func (l *Lock) setCurrent(lease *Lease) {
	l.manualMu.Lock()
	defer l.manualMu.Unlock()
	l.manualLease = lease
}
