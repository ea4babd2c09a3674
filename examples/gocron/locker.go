package main

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"github.com/go-co-op/gocron/v2"

	"github.com/gcslock/gcslock"
)

// A Locker is gocron's distributed Locker: each run of a job, on whichever
// instance, holds a lock of the job's own. Instances that come second skip the
// run.
type Locker struct {
	bucket *storage.BucketHandle
	prefix string
	hold   time.Duration
	opts   []gcslock.Option

	mu      sync.Mutex                // guards leases
	leases  map[string]*gcslock.Lease // of the last run here, by job
	pending sync.WaitGroup            // releases that are due later
}

// NewLocker returns a Locker whose lock objects are called PREFIX/JOB.
//
// A lock is held for at least hold, also where the job is done sooner. gocron
// gives a Locker the job's name and not the time that the run was scheduled for:
// without that, an instance whose clock is a second behind would find the lock
// free again, and run the job a second time. hold must be longer than the
// instances' clocks differ and starts are delayed, and shorter than the job's
// interval.
func NewLocker(bucket *storage.BucketHandle, prefix string, hold time.Duration, opts ...gcslock.Option) *Locker {
	return &Locker{bucket: bucket, prefix: prefix, hold: hold, opts: opts, leases: make(map[string]*gcslock.Lease)}
}

// Lock tries once: a run that another instance has is skipped, not queued. The
// lock of an instance that crashed is taken over when its ttl is over.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lock, err := gcslock.New(l.bucket, l.object(job), l.opts...)
	if err != nil {
		return nil, err
	}
	lease, err := lock.TryAcquire(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.leases[job] = lease
	l.mu.Unlock()
	return &run{locker: l, job: job, lease: lease, began: time.Now()}, nil
}

// object is the name of the job's lock object. A job that was given no name has
// that of its function, which is a path with slashes.
func (l *Locker) object(job string) string { return l.prefix + "/" + url.PathEscape(job) }

// Task is fn with a context that ends when the job's lock is lost, too, for
// gocron.NewTask. gocron itself has no way to tell a job. job is the name that
// gocron.WithName gives it.
func (l *Locker) Task(job string, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		l.mu.Lock()
		lease := l.leases[job]
		l.mu.Unlock()
		return guard(ctx, lease, fn)
	}
}

// Close waits until the last locks are released. Shut the scheduler down first.
func (l *Locker) Close() { l.pending.Wait() }

// A run is one run of a job, and gocron's Lock.
type run struct {
	locker *Locker
	job    string
	lease  *gcslock.Lease
	began  time.Time
}

// Unlock releases the lock when it has been held for long enough, and does not
// wait for that. gocron drops its error, so that failures are logged here.
func (r *run) Unlock(context.Context) error {
	r.locker.pending.Go(func() {
		rest := time.NewTimer(r.locker.hold - time.Since(r.began))
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-r.lease.Context().Done():
		}
		if err := r.lease.Release(context.Background()); err != nil {
			slog.Error("release", "job", r.job, "error", err)
		}
	})
	return nil
}

// guard runs fn with a context that ends with the lease, too.
func guard(ctx context.Context, lease *gcslock.Lease, fn func(context.Context) error) error {
	if lease == nil {
		return fn(ctx) // no lock was asked for
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })()
	return fn(ctx)
}
