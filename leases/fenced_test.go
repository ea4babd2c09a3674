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
		open := func(ctx context.Context, i *instance) *fenced.Object {
			state, err := fenced.Open(ctx, Lease(ctx), i.bucket().Object("state"), fenced.WithInitial(nil))
			if err != nil {
				t.Error(err)
			}
			return state
		}
		first := make(chan *fenced.Object, 1)
		a.Go(a.ctx, "worker", func(ctx context.Context) error {
			state := open(ctx, a)
			if err := state.Write(ctx, []byte("by a")); err != nil {
				t.Error(err)
			}
			first <- state
			return untilCancelled(ctx)
		})
		left := <-first
		w.server.Delete(testBucket, testPrefix+"/worker") // by somebody who is sure that a is dead
		led := make(chan struct{})
		b.Go(b.ctx, "worker", func(ctx context.Context) error {
			if err := open(ctx, b).Write(ctx, []byte("by b")); err != nil {
				t.Error(err)
			}
			close(led)
			return untilCancelled(ctx)
		})
		<-led
		if err := left.Write(t.Context(), []byte("late, by a")); !errors.Is(err, fenced.ErrFenced) {
			t.Errorf("%v, want ErrFenced", err)
		}
		if o, _ := w.server.Object(testBucket, "state"); string(o.Content) != "by b" {
			t.Errorf("the state is %q", o.Content)
		}
		a.shutDown()
		b.shutDown()
	})
}
