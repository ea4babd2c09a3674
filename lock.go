package gcslock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/storage"
)

const (
	// requestLimit bounds every single request, so that one that hangs holds
	// up nothing for longer.
	requestLimit = 10 * time.Second

	// tryAttempts is how often a request that may succeed later is sent where
	// nobody waits: TryAcquire, Inspect, Break.
	tryAttempts = 3
)

// A Lock is a lock on one Cloud Storage object. It is safe for concurrent use;
// every acquisition is a [Lease] of its own, and two acquisitions exclude each
// other even through the same Lock.
type Lock struct {
	settings
	bucket, object string
	url            string
	store          store
	clock          clock
	random         source
	server         serverClock
	queue          queue
	past           past
	invalid        error                        // what New refused; the first call of a NewLock returns it
	olderLogger    func(context.Context) Logger // of NewLock; may be nil

	manualMu    sync.Mutex // guards manualLease
	manualLease *Lease     // of the caller-driven form: the held or lost lease, nil if there is none
}

// New returns the lock on the object in the bucket. It sends no request: all
// that can be wrong with the input is reported here, before any is sent.
//
// The bucket handle is used as it is, with its client, its credentials and its
// user project, and is never closed. Its retry settings do not apply: the
// protocol owns every attempt.
func New(bucket *storage.BucketHandle, object string, opts ...Option) (*Lock, error) {
	l := newLock(bucket, object, opts)
	if l.invalid != nil {
		return nil, l.invalid
	}
	return l, nil
}

// newLock is New that keeps the error within the lock.
func newLock(bucket *storage.BucketHandle, object string, opts []Option) *Lock {
	l := &Lock{object: object, clock: newSystemClock(), random: chance}
	errs := []error{checkName(object)}
	if bucket == nil {
		errs = append(errs, errors.New("bucket handle is nil"))
	} else if l.bucket = bucket.BucketName(); l.bucket == "" {
		errs = append(errs, errors.New("bucket name is empty"))
	}
	var err error
	l.settings, err = newSettings(opts)
	l.url = objectURL(l.bucket, object)
	if err := errors.Join(append(errs, err)...); err != nil {
		l.invalid = fmt.Errorf("gcslock: lock %s: %w", l.url, err)
		return l
	}
	l.store = newGCSStore(bucket, object, l.url, &l.settings)
	return l
}

// validity is how long a lease holds after its last acknowledged write. The
// tenth that it is short of the ttl is for stopping the work, and for clocks
// that run at different speeds.
func (s *settings) validity() time.Duration { return s.ttl - s.ttl/10 }

// writeLimit bounds one create or update. Under a quarter of the ttl, one that
// hangs leaves time for another.
func (s *settings) writeLimit() time.Duration { return min(requestLimit, s.ttl/4) }

// The four requests, each with a limit of its own, and each with an eye on the
// server's clock.

func (l *Lock) create(ctx context.Context, metadata map[string]string) reply {
	return l.change(ctx, l.writeLimit(), func(ctx context.Context) reply { return l.store.create(ctx, metadata) })
}

func (l *Lock) read(ctx context.Context) reply {
	return l.request(ctx, requestLimit, l.store.read)
}

// update has the validity that is left as a limit, too.
func (l *Lock) update(ctx context.Context, left time.Duration, v version, metadata map[string]string) reply {
	return l.change(ctx, min(l.writeLimit(), left), func(ctx context.Context) reply { return l.store.update(ctx, v, metadata) })
}

func (l *Lock) remove(ctx context.Context, v version) reply {
	return l.change(ctx, requestLimit, func(ctx context.Context) reply { return l.store.remove(ctx, v) })
}

func (l *Lock) change(ctx context.Context, limit time.Duration, send func(context.Context) reply) reply {
	r := l.request(ctx, limit, send)
	l.past.change(r.outcome, l.clock.now())
	return r
}

func (l *Lock) request(ctx context.Context, limit time.Duration, send func(context.Context) reply) reply {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := send(ctx)
	l.server.note(r.date, l.clock.now())
	return r
}

// Acquire waits for the lock until ctx ends, or for as long as [WithMaxWait]
// says, and returns a held lease. Where it can't be had:
//
//   - the wait ended: a [*HeldError] that names the holder and is both
//     [ErrLocked] and ctx's error; only ctx's error, with the last failure,
//     where storage was out of reach and no holder was seen;
//   - permissions, the bucket or a retention policy are in the way: the error
//     comes at once and names the request and what it needs.
//
// ctx bounds the wait and nothing else: the lease's context keeps its values,
// not its cancellation. If ctx ends while a create request is under way, Acquire
// takes up to 5 s more to delete what that request may have made; what the
// network delivers even later holds the lock until its ttl is over.
//
// If the lock is won just as ctx ends, the lease is returned.
//
// Calls on one Lock wait in a queue: whoever came first goes first, and alone talks
// to the bucket; while another lease of this Lock is held it waits for that one's end,
// without a request. The wait in the queue is part of the wait in every respect. What
// other processes do has no order.
//
// An uncontended Acquire is one write request, see [WithStandby] for one that
// looks first. While somebody else holds the lock, each look is one read request,
// see [WithWait]. After a release of this Lock it may pause first, so that others
// get in, see the package's section on cost; with [WithLocalHandoff] it may need no
// request.
func (l *Lock) Acquire(ctx context.Context) (*Lease, error) {
	if l.invalid != nil {
		return nil, l.invalid
	}
	if l.limitWait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.waitLimit)
		defer cancel()
	}
	lease, err := l.acquire(ctx, false)
	if err != nil {
		return nil, err
	}
	lease.start(!l.manual)
	return lease, nil
}

// TryAcquire is one round of [Lock.Acquire], without a wait: where somebody
// else holds the lock it returns a [*HeldError], which is [ErrLocked], at once.
// It does take over a stale lock. Requests that fail for now are sent up to
// three times within ctx. It stands in no queue: where the lock is free, it goes
// before those who wait in Acquire.
//
// It costs one write request if the lock is free, one write and one read if it
// is held.
func (l *Lock) TryAcquire(ctx context.Context) (*Lease, error) {
	if l.invalid != nil {
		return nil, l.invalid
	}
	lease, err := l.acquire(ctx, true)
	if err != nil {
		return nil, err
	}
	lease.start(!l.manual)
	return lease, nil
}

// Do acquires the lock as [Lock.Acquire] does, in the same queue, calls fn, and
// releases when fn has returned, failed or panicked; a panic goes on.
//
// fn's context is cancelled when ctx ends and when the lease is lost; its cause
// tells which. The lease is refreshed until fn has returned, however long fn
// takes to stop after that, and never released under it. The context of the
// lease itself, [Lease.Context], ends with the lease alone.
//
// If the lease is lost, Do's error is [ErrLockAbandoned], joined with fn's own.
// A release that fails is reported, too, joined with fn's error.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, lease *Lease) error) (err error) {
	lease, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(lease.Context())
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	// Deferred, so that a panic and runtime.Goexit release, too. They discard
	// the result.
	defer func() {
		unlink()
		cancel(nil)
		err = errors.Join(lease.Release(ctx), err)
	}()
	return fn(work, lease)
}
