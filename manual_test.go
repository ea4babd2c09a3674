package gcslock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/gcslock/gcslock/gcstest"
)

// older is a lock of the caller-driven form on this machine.
func (m *machine) older(logContext func(context.Context) Logger, opts ...Option) *Lock {
	l := NewLock(m.bucket(testBucket), m.name, testObject, time.Minute, logContext, opts...)
	l.clock = m.clock
	return l
}

func TestCallerDriven(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.machine("a").older(nil)
		for name, err := range map[string]error{"RefreshLock": l.RefreshLock(t.Context()), "Unlock": l.Unlock(t.Context())} {
			if err != nil {
				t.Errorf("%s where nothing is held: %v", name, err)
			}
		}
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(50 * time.Second)
			if err := l.RefreshLock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.RefreshLock(t.Context()); err != nil {
			t.Errorf("RefreshLock after Unlock: %v", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock twice: %v", err)
		}
		if got, want := w.ops(""), "create"+strings.Repeat(" update", 10)+" delete"; got != want {
			t.Errorf("requests are %q, want %q", got, want)
		}
	})
}

// TestCallerDrivenWaits until its timeout, and no longer than its context.
func TestCallerDrivenWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		l := w.machine("b").older(nil)
		began := time.Now()
		err := l.Lock(t.Context(), 10*time.Second)
		took(t, "Lock", began, 10*time.Second, 10*time.Second)
		isHeld(t, err, "a")
		isContext(t, err, context.DeadlineExceeded)

		began = time.Now()
		isHeld(t, l.Lock(t.Context(), 0), "a")
		took(t, "Lock without a timeout", began, 0, 0)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		isContext(t, l.Lock(ctx, time.Hour), context.Canceled)
		took(t, "Lock with a context", began, time.Second, time.Second)

		time.AfterFunc(time.Minute, func() { w.release(lease) })
		if err := l.Lock(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCallerDrivenFailures: three are returned as they are, the fourth in a
// row is the loss, for ever; a success starts the count again. One attempt a
// call.
func TestCallerDrivenFailures(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.machine("a").older(nil)
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		fail := func() error {
			w.inject(gcstest.Update, 1, gcstest.FailStatus(503))
			began := time.Now()
			err := l.RefreshLock(t.Context())
			took(t, "RefreshLock", began, 0, 0)
			return err
		}
		transient := func(err error) {
			t.Helper()
			var api *googleapi.Error
			if !errors.As(err, &api) || api.Code != 503 || errors.Is(err, ErrLockAbandoned) {
				t.Errorf("a transient failure is %v", err)
			}
		}
		for range 3 {
			transient(fail())
		}
		if err := l.RefreshLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			transient(fail())
		}
		isLoss(t, "the fourth", fail())
		isLoss(t, "RefreshLock on a server that works again", l.RefreshLock(t.Context()))
		isLoss(t, "Unlock", l.Unlock(t.Context()))
		isLoss(t, "Unlock again", l.Unlock(t.Context()))
		isLoss(t, "RefreshLock after Unlock", l.RefreshLock(t.Context()))
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatalf("a new Lock: %v", err)
		}
		if err := l.RefreshLock(t.Context()); err != nil {
			t.Errorf("RefreshLock of the new one: %v", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCallerDrivenExpires: no timer runs, but the clock is looked at.
func TestCallerDrivenExpires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.machine("a").older(nil)
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(54 * time.Second)
		isLoss(t, "RefreshLock", l.RefreshLock(t.Context()))
		if n := w.count(gcstest.Update); n != 0 {
			t.Errorf("%d refreshes of an expired lease", n)
		}
		isLoss(t, "Unlock", l.Unlock(t.Context()))
	})
	// A hung request ends with the validity, which no watchdog enforces here.
	inWorld(t, func(t *testing.T, w *world) {
		l := w.machine("a").older(nil)
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		w.inject(gcstest.Update, 0, gcstest.Hang())
		began := time.Now()
		isLoss(t, "RefreshLock", l.RefreshLock(t.Context()))
		took(t, "RefreshLock", began, 4*time.Second, 4*time.Second)
	})
}

// TestCallerDrivenLoss: Unlock tells, and leaves the successor's object alone.
func TestCallerDrivenLoss(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.machine("a").older(nil)
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		w.server.Delete(testBucket, testObject)
		w.rival()
		isLoss(t, "Unlock", l.Unlock(t.Context()))
		if _, ok := w.object(); !ok {
			t.Error("Unlock removed the successor's object")
		}
	})
}

// TestCallerDrivenReclaims what carries the same id, its own object among it.
func TestCallerDrivenReclaims(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, second := w.machine("a").older(nil), w.machine("a").older(nil)
		began := time.Now()
		for _, l := range []*Lock{first, second, second} {
			if err := l.Lock(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		took(t, "three Locks", began, 0, 0)
		isLoss(t, "RefreshLock of the first", first.RefreshLock(t.Context()))
		if err := second.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
	// Without reclaim it would wait for itself.
	inWorld(t, func(t *testing.T, w *world) {
		l := w.machine("a").lock()
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		says(t, l.Lock(t.Context(), time.Minute), "gs://jobs/nightly/lock", "already held through this Lock")
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCallerDrivenUnlockFails: the error is told once; then nothing is held.
func TestCallerDrivenUnlockFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.machine("a").older(nil)
		if err := l.Lock(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		w.inject(gcstest.Delete, 1, gcstest.Forbid("storage.objects.delete"))
		says(t, l.Unlock(t.Context()), "storage.objects.delete", "others wait until")
		if err := l.RefreshLock(t.Context()); err != nil {
			t.Errorf("RefreshLock: %v", err)
		}
	})
}

// TestCallerDrivenLogger gets what the older library's users know: Info, and
// Error with its error.
func TestCallerDrivenLogger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var lines []string
		logger := recorder{func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}
		ctx := context.WithValue(t.Context(), ctxKey, "value")
		l := w.machine("a").older(func(ctx context.Context) Logger {
			if ctx.Value(ctxKey) != "value" {
				t.Error("logged without the caller's context")
			}
			return logger
		})
		if err := l.Lock(ctx, time.Minute); err != nil {
			t.Fatal(err)
		}
		w.inject(gcstest.Update, 1, gcstest.FailStatus(503))
		if err := l.RefreshLock(ctx); err == nil {
			t.Error("no error")
		}
		w.server.Delete(testBucket, testObject)
		isLoss(t, "RefreshLock", l.RefreshLock(ctx))
		want := []string{"info: lock acquired", "error: refresh failed, trying again: update gs://jobs/nightly/lock: HTTP 503", "error: lock lost: gcslock: lock gs://jobs/nightly/lock abandoned"}
		if len(lines) != len(want) {
			t.Fatalf("logged %q", lines)
		}
		for i := range want {
			if !strings.HasPrefix(lines[i], want[i]) || !strings.Contains(lines[i], "bucket jobs") {
				t.Errorf("line %d is %q, want %q and the fixed keys", i, lines[i], want[i])
			}
		}
		silent := w.machine("b").older(func(context.Context) Logger { return nil })
		if err := silent.Lock(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		if err := silent.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
