package gcslock

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

var errWork = errors.New("the work failed")

func TestDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock()
		ctx := context.WithValue(t.Context(), ctxKey, "value")
		err := lock.Do(ctx, func(ctx context.Context, lease *Lease) error {
			if obj, ok := w.object(); !ok || obj.Generation != lease.Token() || ctx.Value(ctxKey) != "value" || ctx.Err() != nil {
				t.Errorf("inside: object %v, context %v", ok, ctx.Err())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := lock.Do(ctx, func(context.Context, *Lease) error { return errWork }); err != errWork && !errors.Is(err, errWork) {
			t.Errorf("fn's error became %v", err)
		}
		if got := w.ops(""); got != "create delete create delete" {
			t.Errorf("requests are %q", got)
		}
	})
}

// TestDoPanics: the lock is released, and the panic goes on. So with Goexit.
func TestDoPanics(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock()
		ended := make(chan any)
		for _, end := range []func(){func() { panic(errWork) }, runtime.Goexit} {
			go func() {
				defer func() { ended <- recover() }()
				_ = lock.Do(context.Background(), func(context.Context, *Lease) error { end(); return nil })
				t.Error("Do returned")
			}()
		}
		if first, second := <-ended, <-ended; !(first == errWork && second == nil || first == nil && second == errWork) {
			t.Errorf("ended with %v and %v, want the panic and nothing", first, second)
		}
		if _, ok := w.object(); ok {
			t.Error("the object is still there")
		}
	})
}

// TestDoContextEnds: fn is told, stays protected while it stops, and the
// release follows.
func TestDoContextEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		err := w.machine("a").lock().Do(ctx, func(ctx context.Context, lease *Lease) error {
			<-ctx.Done()
			if context.Cause(ctx) != cause {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			time.Sleep(10 * time.Minute) // slow to stop
			if lease.Err() != nil || lease.Context().Err() != nil {
				t.Errorf("not protected while it stops: %v", lease.Err())
			}
			return ctx.Err()
		})
		if err != context.Canceled && !errors.Is(err, context.Canceled) || errors.Is(err, ErrLockAbandoned) {
			t.Errorf("Do returns %v", err)
		}
		if _, ok := w.object(); ok {
			t.Error("the object is still there")
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.rival()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.machine("a").lock().Do(ctx, func(context.Context, *Lease) error { t.Error("called"); return nil })
		isHeld(t, err, "rival")
		isContext(t, err, context.DeadlineExceeded)
	})
}

// TestDoLoses: fn's context is cancelled with the cause, and the error is the
// loss and fn's own.
func TestDoLoses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		err := w.machine("a").lock().Do(t.Context(), func(ctx context.Context, lease *Lease) error {
			w.server.Delete(testBucket, testObject)
			<-ctx.Done()
			isLoss(t, "the cause", context.Cause(ctx))
			return errWork
		})
		isLoss(t, "Do", err)
		if !errors.Is(err, errWork) {
			t.Errorf("fn's error is lost in %v", err)
		}
	})
	// fn does not notice, but its caller is told.
	inWorld(t, func(t *testing.T, w *world) {
		err := w.machine("a").lock().Do(t.Context(), func(context.Context, *Lease) error {
			w.server.Delete(testBucket, testObject)
			return nil
		})
		isLoss(t, "Do", err)
	})
	inWorld(t, func(t *testing.T, w *world) {
		err := w.machine("a").lock(WithMaxHold(time.Minute)).Do(t.Context(), func(ctx context.Context, _ *Lease) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		isLoss(t, "Do", err)
		if _, ok := w.object(); ok {
			t.Error("not released after fn has returned")
		}
	})
}

// TestDoReportsFailedRelease beside fn's result.
func TestDoReportsFailedRelease(t *testing.T) {
	for _, result := range []error{nil, errWork} {
		inWorld(t, func(t *testing.T, w *world) {
			w.inject(gcstest.Delete, 0, gcstest.Forbid("storage.objects.delete"))
			err := w.machine("a").lock().Do(t.Context(), func(context.Context, *Lease) error { return result })
			says(t, err, "others wait until", "storage.objects.delete")
			if result != nil && !errors.Is(err, result) {
				t.Errorf("fn's error is lost in %v", err)
			}
		})
	}
}
