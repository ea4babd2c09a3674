package fenced

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// passOn gives the lock of a holder that was acquired with WithLocalHandoff to
// another through the same Lock.
func (w *world) passOn(lock *gcslock.Lock, from *gcslock.Lease, to *holder) {
	w.Helper()
	next := make(chan *gcslock.Lease)
	go func() {
		lease, err := lock.Acquire(w.ctx)
		if err != nil {
			w.Error(err)
		}
		next <- lease
	}()
	synctest.Wait()
	w.must(from.Release(w.ctx))
	to.lease = <-next
	if to.lease.Token() != from.Token() || to.lease.Sequence() != from.Sequence()+1 {
		w.Fatal("it was not passed on")
	}
}

// run is a Lock with a lease that can be passed on, and the holders of it and of
// the next, whose requests can be told apart.
func (w *world) run() (lock *gcslock.Lock, a, b *holder) {
	w.Helper()
	a = &holder{world: w, name: "a", bucket: w.bucket("a", nil)}
	b = &holder{world: w, name: "b", bucket: w.bucket("b", nil)}
	lock, err := gcslock.New(a.bucket, testLock, gcslock.WithLocalHandoff(5, time.Hour))
	w.must(err)
	a.lease, err = lock.Acquire(w.ctx)
	w.must(err)
	w.Cleanup(func() { _ = b.lease.Release(context.WithoutCancel(w.ctx)) })
	return lock, a, b
}

// TestFencedOffInRun: leases of one run have one token, and each fences the former
// ones off all the same.
func TestFencedOffInRun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		lock, a, b := w.run()
		old := a.open()
		paused := gcstest.NewBarrier()
		w.inject("a", gcstest.Create, 1, gcstest.Hold(paused))
		late := start(func() error { return old.Write(w.ctx, []byte("late")) })
		w.arrived(paused)
		w.passOn(lock, a.lease, b)
		o := b.open()
		paused.Release()
		w.is(<-late, []error{ErrFenced}, "has been released")
		w.reads(o, "0")
		w.must(o.Write(w.ctx, []byte("new")))
		obj := w.holds("new")
		if fence := obj.Metadata[keyFence]; !strings.HasSuffix(fence, ".2") {
			t.Errorf("the fence of the second lease of a run is %q", fence)
		}
	})
}

// TestLateClaimInRun: a claim of the former lease that comes late is not followed by
// a write, although the lock object is there and has its token.
func TestLateClaimInRun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		lock, a, b := w.run()
		paused := gcstest.NewBarrier()
		w.inject("a", gcstest.Update, 1, gcstest.Hold(paused))
		late := start(func() error {
			o, err := Open(w.ctx, a.lease, a.state())
			if err != nil {
				return err
			}
			return o.Write(w.ctx, []byte("late"))
		})
		w.arrived(paused)
		w.passOn(lock, a.lease, b)
		paused.Release()
		w.is(<-late, []error{ErrFenced}, "has been released")
		o := b.open()
		w.must(o.Write(w.ctx, []byte("new")))
		w.holds("new")
	})
}

// TestFormersClaimIsNotTaken: a claim whose request was lost, and in whose place the
// former lease's is found, is sent again.
func TestFormersClaimIsNotTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		lock, a, b := w.run()
		withheld := w.inject("a", gcstest.Update, 1, gcstest.Withhold())
		late := start(func() error { _, err := Open(w.ctx, a.lease, a.state()); return err })
		synctest.Wait()
		w.passOn(lock, a.lease, b)
		hold := gcstest.NewBarrier()
		w.inject("b", gcstest.Update, 1, gcstest.Hold(hold))
		opened := start(func() error { b.open(); return nil })
		w.arrived(hold)
		withheld.Deliver() // between b's look and its claim
		hold.Release()
		w.must(<-opened)
		if got := w.ops("b"); got != "get update get update" {
			t.Errorf("the claims are %q, want another after the one that was refused", got)
		}
		w.is(<-late, []error{ErrFenced}, "has been released")
	})
}
