package fenced

import (
	"testing"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/grpctest"
)

// TestOverGRPC: claims and writes of the storage client's other transport carry the
// same preconditions, and meet the same outcomes. Downloads are not among what the
// test's service has.
func TestOverGRPC(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		server, err := grpctest.New(w.ctx, named{w.server.Transport(), "a"})
		w.must(err)
		defer func() { w.must(server.Close()) }()
		lock, err := gcslock.New(server.Bucket(testBucket), testLock)
		w.must(err)
		lease, err := lock.Acquire(w.ctx)
		w.must(err)
		defer func() { _ = lease.Release(w.ctx) }()
		w.inject("a", gcstest.Update, 1, gcstest.LoseReply())
		o, err := Open(w.ctx, lease, server.Bucket(testBucket).Object(testState))
		w.must(err)
		w.inject("a", gcstest.Create, 1, gcstest.LoseReply())
		w.must(o.Write(w.ctx, []byte("a")))
		if got, want := w.ops("a"), "get update get create get"; got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
		w.lose()
		b := w.acquire("b").open()
		w.reads(b, "a")
		w.is(o.Write(w.ctx, []byte("late")), []error{ErrFenced}, `it is now held by "b"`)
		w.holds("a")
	})
}
