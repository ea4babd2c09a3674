package leases

import (
	"context"
	"errors"
	"testing"

	"github.com/gcslock/gcslock/fenced"
)

// TestFencedWorker: a worker's state is its own while it leads. When another
// instance leads, the first one's write is refused.
func TestFencedWorker(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("a", Config{}), w.start("b", Config{})
		defer a.shutDown()
		defer b.shutDown()
		// leads has the worker of an instance write the state, and keep at it.
		leads := func(i *instance) *fenced.Object {
			wrote := make(chan *fenced.Object, 1)
			i.Go(i.ctx, "worker", func(ctx context.Context) error {
				state, err := fenced.Open(ctx, Lease(ctx), i.bucket().Object("state"), fenced.WithInitial(nil))
				if err == nil {
					err = state.Write(ctx, []byte("by "+i.name))
				}
				if err != nil {
					t.Error(err)
					state = nil
				}
				wrote <- state
				return untilCancelled(ctx)
			})
			return <-wrote
		}
		left := leads(a)
		w.server.Delete(testBucket, testPrefix+"/worker") // by somebody who is sure that a is dead
		if leads(b) == nil || left == nil {
			return
		}
		if err := left.Write(t.Context(), []byte("late, by a")); !errors.Is(err, fenced.ErrFenced) {
			t.Errorf("%v, want ErrFenced", err)
		}
		if o, _ := w.server.Object(testBucket, "state"); string(o.Content) != "by b" {
			t.Errorf("the state is %q", o.Content)
		}
	})
}
