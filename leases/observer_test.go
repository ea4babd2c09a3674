package leases

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gcslock/gcslock"
)

// TestObserver: workers are observed, by the names of their locks.
func TestObserver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var told []string
		observe := WithObserver(gcslock.ObserverFunc(func(_ context.Context, e gcslock.Event) {
			if e.Kind == gcslock.EventRefreshed {
				return // the first one comes at a random time
			}
			mu.Lock()
			defer mu.Unlock()
			told = append(told, e.Object+" "+string(e.Kind))
		}))
		first := w.start("first", Config{}, observe)
		first.Go(first.ctx, "import", untilCancelled)
		time.Sleep(10 * time.Second)
		second := w.start("second", Config{}, observe)
		second.Go(second.ctx, "import", untilCancelled)
		time.Sleep(5 * time.Second)
		first.shutDown()
		time.Sleep(5 * time.Second)
		second.shutDown()
		want := []string{"workers/import acquired", "workers/import contended", "workers/import released", "workers/import acquired", "workers/import released"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
