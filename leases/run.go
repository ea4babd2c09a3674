package leases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gcslock/gcslock"
)

// Run runs fn whenever this instance holds the lease on the name, and blocks
// until ctx ends or fn is done:
//
//   - fn returns nil: done, Run releases and returns. Other instances that run
//     this name start it then.
//   - fn returns an error: Run releases, so that it can be tried elsewhere, and
//     goes for the lease again after a RenewInterval.
//   - The lease is lost: fn's context is cancelled, with a cause that is
//     [gcslock.ErrLockAbandoned]. When fn has returned, whatever it returns, Run
//     goes for the lease again.
//   - ctx ends: fn's context is cancelled, with ctx's cause. The lease is kept
//     alive until fn has returned, and then released.
//   - fn panics: Run releases, and the panic goes on.
//
// fn that does not return after its context was cancelled is logged, and shown
// by Status, as [Stopping] or [Lost]. It is never run a second time beside
// itself by this manager.
//
// A name can run once at a time in a manager. A second Run of it is refused: it
// returns at once, with an error in the log and in Status. So is one without a
// name or function.
func (m *Manager) Run(ctx context.Context, name string, fn func(context.Context) error) {
	if w, ok := m.register(ctx, name, fn); ok {
		w.run(ctx, fn)
	}
}

// Go is Run in the background. The worker is registered, for Wait and Status,
// when Go returns.
func (m *Manager) Go(ctx context.Context, name string, fn func(context.Context) error) {
	if w, ok := m.register(ctx, name, fn); ok {
		go w.run(ctx, fn)
	}
}

type leaseKey struct{}

// Lease is the lease that a worker runs under, from its context, for package
// fenced and [gcslock.Lease.Verify]. It is nil where there is none, as in a
// manager that is not enabled. Don't release it: Run does, when the worker has
// returned, and takes a lease that ends before for a lost one.
func Lease(ctx context.Context) *gcslock.Lease {
	lease, _ := ctx.Value(leaseKey{}).(*gcslock.Lease)
	return lease
}

// Token is the token of that lease: the generation of the lock object, unique to
// this run of all of the name's. Compare it for equality only. It is 0 where
// there is no lease.
func Token(ctx context.Context) int64 {
	if lease := Lease(ctx); lease != nil {
		return lease.Token()
	}
	return 0
}

// A next is what a worker does after a turn.
type next int

const (
	nextStop  next = iota
	nextNow        // go for the lease again
	nextLater      // the same, after a RenewInterval
)

func (w *worker) run(ctx context.Context, fn func(context.Context) error) {
	defer w.stopped() // also when fn panics or ends its goroutine
	for {
		switch w.turn(ctx, fn) {
		case nextStop:
			return
		case nextLater:
			pause(ctx, w.m.cfg.RenewInterval)
		}
	}
}

// turn goes for the lease and runs fn under it, once.
func (w *worker) turn(ctx context.Context, fn func(context.Context) error) next {
	if ctx.Err() != nil {
		return nextStop
	}
	base, lease := ctx, (*gcslock.Lease)(nil)
	if w.lock != nil {
		var err error
		lease, err = w.lock.Acquire(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nextStop
		case err != nil:
			w.failed(err)
			w.log.ErrorContext(ctx, "worker can't get its lease, trying again", "error", err, "after", w.m.cfg.RenewInterval)
			return nextLater
		case ctx.Err() != nil: // won just as ctx ended
			w.release(ctx, lease)
			return nextStop
		}
		base = context.WithValue(lease.Context(), leaseKey{}, lease)
	}
	interrupted, err := w.lead(ctx, base, lease, fn)
	switch {
	case ctx.Err() != nil:
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(ctx)) {
			w.failed(err)
			w.log.WarnContext(ctx, "worker stopped with an error", "error", err)
		}
		return nextStop
	case interrupted != nil:
		w.failed(interrupted)
		w.log.WarnContext(ctx, "worker lost its lease and stopped", "error", errors.Join(interrupted, err))
		return nextNow
	case err != nil:
		err = fmt.Errorf("worker failed: %w", err)
		w.failed(err)
		w.log.ErrorContext(ctx, "worker failed, running again", "error", err, "after", w.m.cfg.RenewInterval)
		return nextLater
	}
	w.log.InfoContext(ctx, "worker done")
	return nextStop
}

// lead runs fn until it returns, and releases the lease, if there is one.
// interrupted is the cause for which its context was cancelled, if that came
// before it returned.
func (w *worker) lead(ctx, base context.Context, lease *gcslock.Lease, fn func(context.Context) error) (interrupted, err error) {
	work, cancel := context.WithCancelCause(base)
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	w.set(Leading, Token(work))
	returned, overseen := make(chan struct{}), make(chan struct{})
	go w.oversee(work, lease, returned, overseen)

	ended := false
	// Deferred, so that a panic and runtime.Goexit release, too.
	defer func() {
		unlink()
		close(returned)
		<-overseen
		cancel(nil)
		if !ended {
			w.failed(errors.New("the worker's function panicked or ended its goroutine"))
		}
		if lease != nil {
			w.set(Stopping, lease.Token())
			w.release(ctx, lease)
		}
		w.set(Following, 0)
	}()
	err = fn(work)
	ended = true
	return context.Cause(work), err
}

// release gives the lease up. One that was lost is no failure to release.
func (w *worker) release(ctx context.Context, lease *gcslock.Lease) {
	err := lease.Release(ctx)
	if errors.Is(err, gcslock.ErrLockAbandoned) {
		err = nil
	}
	w.released(err)
	if err != nil {
		w.failed(err)
		w.log.ErrorContext(ctx, "worker's lease could not be released", "error", err)
	}
}

// oversee tells what fn does after its context was cancelled.
func (w *worker) oversee(work context.Context, lease *gcslock.Lease, returned <-chan struct{}, overseen chan<- struct{}) {
	defer close(overseen)
	select {
	case <-returned:
		return
	case <-work.Done():
	}
	state := Stopping
	w.set(state, Token(work))
	var lost <-chan struct{}
	if lease != nil {
		lost = lease.Context().Done()
	}
	began := time.Now()
	// A tenth of the ttl is what a worker has after a loss.
	late := time.NewTimer(w.m.cfg.TTL / 10)
	defer late.Stop()
	for {
		select {
		case <-returned:
			return
		case <-lost:
			lost, state = nil, Lost
			w.set(state, Token(work))
			w.failed(context.Cause(lease.Context()))
		case <-late.C:
			late.Reset(w.m.cfg.RenewInterval)
			level := slog.LevelWarn
			if state == Lost {
				level = slog.LevelError
			}
			w.log.Log(work, level, "worker ignores its cancelled context: "+w.status().describe(), "error", context.Cause(work), "generation", Token(work), "since", began)
		}
	}
}
