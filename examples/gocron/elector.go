package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/leases"
)

// stopLimit is for giving up the leadership.
const stopLimit = 15 * time.Second

var errFollower = errors.New("another instance is the leader, or nobody is yet")

// An Elector is gocron's distributed Elector: one instance, the leader, runs all
// jobs, for as long as it holds one lock. Skewed clocks do no harm here: the
// others do not look at theirs.
type Elector struct {
	manager *leases.Manager
	stop    context.CancelFunc
	lease   atomic.Pointer[gcslock.Lease] // nil while this instance follows
}

// NewElector goes for the lock PREFIX/NAME in the background, until Close.
func NewElector(bucket *storage.BucketHandle, prefix, name string, cfg leases.Config, opts ...leases.Option) *Elector {
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{manager: leases.NewManager(bucket, prefix, cfg, opts...), stop: stop}
	e.manager.Go(ctx, name, func(ctx context.Context) error {
		e.lease.Store(leases.Lease(ctx))
		defer e.lease.Store(nil)
		<-ctx.Done()
		return ctx.Err()
	})
	return e
}

// IsLeader is nil while this instance is the leader. It sends no request: the
// lease is looked at, by the local clock, so that an instance that is cut off
// stops before another one can start.
func (e *Elector) IsLeader(context.Context) error {
	lease := e.lease.Load()
	if lease == nil {
		return errFollower
	}
	return lease.Err()
}

// Task is fn with a context that ends when the leadership is lost, too, for
// gocron.NewTask. gocron asks IsLeader when a job starts, and not again.
func (e *Elector) Task(fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return guard(ctx, e.lease.Load(), fn) }
}

// Close gives the leadership up, so that another instance has it within about a
// second. Shut the scheduler down first: its jobs run under the lock.
func (e *Elector) Close() error {
	e.stop()
	return e.manager.Wait(stopLimit)
}
