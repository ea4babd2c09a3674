package gcslock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestNoGoroutineStays: a bubble ends with a panic if a goroutine is left in
// it that waits for something, and this one waits until there is none that
// runs. Released, lost and cancelled, each a thousand times.
func TestNoGoroutineStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock(WithWait(time.Millisecond, time.Millisecond))
		for range 1000 {
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.release(lease)
		}
		for range 1000 {
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.server.Delete(testBucket, testObject)
			<-lease.Context().Done() // never released
		}
		w.rival()
		w.inject(gcstest.Get, 0, gcstest.Hang())
		for range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := lock.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		synctest.Wait()
	})
}
