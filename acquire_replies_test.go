package gcslock

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestCreateReplyLost: the create was applied, its reply lost. The nonce tells
// that the object is ours; the validity counts from before that create.
func TestCreateReplyLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 1, gcstest.LoseReply())
		sent := time.Now()
		lease := w.machine("a").acquire()
		if got := w.ops("a"); got != "create get" {
			t.Errorf("requests are %q, want create get", got)
		}
		if obj, _ := w.object(); obj.Generation != lease.Token() {
			t.Errorf("token %d, object %d", lease.Token(), obj.Generation)
		}
		if time.Now().Equal(sent) || !lease.Expires().Equal(sent.Add(54*time.Second)) {
			t.Errorf("expires %v after the create, want 54 s", lease.Expires().Sub(sent))
		}
		w.release(lease)
	})
}

// TestCreateReplyLostToCompetitor: our object was made, removed and replaced by
// a competitor's before we looked.
func TestCreateReplyLostToCompetitor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 1, gcstest.LoseReply())
		look := gcstest.NewBarrier()
		w.inject(gcstest.Get, 1, gcstest.Hold(look))
		done := make(chan error)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			_, err := w.machine("a").lock().Acquire(ctx)
			done <- err
		}()
		w.arrived(look)
		rival := w.rival()
		keepRefreshed(w, ctx)
		look.Release()
		err := <-done
		isHeld(t, err, "rival")
		isContext(t, err, context.DeadlineExceeded)
		if obj, ok := w.object(); !ok || obj.Generation != rival.Generation {
			t.Error("the competitor's object is gone")
		}
	})
}

// TestCreateNotApplied: nothing was made, so another create follows, with a
// nonce of its own.
func TestCreateNotApplied(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{
		"dropped": gcstest.DropRequest(), "503": gcstest.FailStatus(503), "408": gcstest.FailStatus(408), "429": gcstest.FailStatus(429),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.inject(gcstest.Create, 2, fault)
				began := time.Now()
				w.release(w.machine("a").acquire())
				took(t, "getting it", began, time.Millisecond, 4*time.Second)
				nonces := map[string]bool{}
				for _, r := range w.server.Requests() {
					if _, nonce, ok := strings.Cut(string(r.Body), `"nonce":"`); ok && r.Op == gcstest.Create {
						nonces[nonce[:32]] = true
					}
				}
				if len(nonces) != 3 {
					t.Errorf("%d nonces in three creates", len(nonces))
				}
			})
		})
	}
}

// TestCreateSentTwice: a proxy or a transport of the user's repeats the create,
// and we see the second one's 412.
func TestCreateSentTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.between = twice(http.MethodPost)
		lease := a.acquire()
		if got := w.ops("a"); got != "create create get" {
			t.Errorf("requests are %q, want the create twice, and a look", got)
		}
		w.release(lease)
	})
}

// TestVanishedBetween412AndRead: the object that was in the way is gone when it
// is read. It is created again at once.
func TestVanishedBetween412AndRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rival()
		look := gcstest.NewBarrier()
		w.inject(gcstest.Get, 1, gcstest.Hold(look))
		go func() {
			w.arrived(look)
			w.server.Delete(testBucket, testObject)
			look.Release()
		}()
		began := time.Now()
		lease, err := w.machine("a").lock().TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		took(t, "getting it", began, 0, 0)
		if got := w.ops("a"); got != "create get create" {
			t.Errorf("requests are %q, want create get create", got)
		}
		w.release(lease)
	})
}

// TestVanishedLater: also after another holder got in between.
func TestVanishedLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rival()
		second := gcstest.NewBarrier()
		w.server.Inject(gcstest.Fault{Op: gcstest.Create, Skip: 1, Times: 1, Do: gcstest.Hold(second)})
		go func() {
			time.Sleep(10 * time.Second)
			w.server.Delete(testBucket, testObject)
			w.arrived(second)
			w.rival()
			second.Release()
			time.Sleep(10 * time.Second)
			w.server.Delete(testBucket, testObject)
		}()
		lease := w.machine("a").acquire()
		requests := w.server.Requests()
		read, create := requests[len(requests)-2], requests[len(requests)-1]
		if read.Op != gcstest.Get || read.Status != http.StatusNotFound || create.Op != gcstest.Create || !create.Time.Equal(read.Time) {
			t.Errorf("%v after the read that found it gone the create followed", create.Time.Sub(read.Time))
		}
		w.release(lease)
	})
}

// TestContradictingServer: one that answers 412 to the create and 404 to the
// read is not asked without pauses, and a try ends.
func TestContradictingServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rival()
		w.inject(gcstest.Get, 0, gcstest.FailStatus(404))
		_, err := w.machine("a").lock().TryAcquire(t.Context())
		if !errors.Is(err, ErrLocked) {
			t.Errorf("a try ends with %v, want ErrLocked", err)
		}
		says(t, err, "by a holder that could not be read")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.machine("b").lock().Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait ends with %v", err)
		}
		if n := w.count(gcstest.Create); n > 650 {
			t.Errorf("%d creates in a minute", n)
		}
	})
}

// TestLateCreate: what the network delivers after all that is an orphan. It
// holds the lock until its ttl is over, and no longer; the next run of the same
// lock is kept out, too, and does not take it for its own.
func TestLateCreate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		late := w.inject(gcstest.Create, 1, gcstest.Withhold())
		lock := w.machine("a").lock()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := lock.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		late.Deliver()
		if _, ok := w.object(); !ok {
			t.Fatal("the create was not delivered")
		}
		_, err := lock.TryAcquire(t.Context())
		isHeld(t, err, "a")
		began := time.Now()
		w.release(w.machine("b").acquire())
		took(t, "the wait for the orphan's end", began, time.Minute, time.Minute+2*time.Second)
	})
	// Delivered while the acquisition still runs, it is ours.
	inWorld(t, func(t *testing.T, w *world) {
		late := w.inject(gcstest.Create, 1, gcstest.Withhold())
		again := gcstest.NewBarrier()
		w.inject(gcstest.Create, 1, gcstest.Hold(again))
		go func() {
			w.arrived(again) // the second create, after a read that found nothing
			late.Deliver()
			again.Release()
		}()
		sent := time.Now()
		lease := w.machine("a").acquire()
		if obj, _ := w.object(); obj.Generation != lease.Token() || !lease.Expires().Equal(sent.Add(54*time.Second)) {
			t.Errorf("token %d of object %d, expires %v after the first create", lease.Token(), obj.Generation, lease.Expires().Sub(sent))
		}
		w.release(lease)
	})
}

// TestNearlyUsedUpLeaseIsNotReturned: by the time that the lost reply is made
// good, less than a refresh interval of validity is left.
func TestNearlyUsedUpLeaseIsNotReturned(t *testing.T) {
	// With a ttl of 10 s the validity is 9 s and the interval 3.3 s.
	lateReads := func(w *world, until time.Duration) {
		w.inject(gcstest.Create, 1, gcstest.LoseReply())
		outage := w.inject(gcstest.Get, 0, gcstest.FailStatus(503))
		time.AfterFunc(until, outage.Remove)
	}
	inWorld(t, func(t *testing.T, w *world) {
		lateReads(w, 6*time.Second)
		lease := w.machine("a").acquire(WithTTL(10 * time.Second))
		if left := time.Until(lease.Expires()); left != 9*time.Second {
			t.Errorf("%v left after the refresh, want 9 s", left)
		}
		if w.count(gcstest.Create) != 1 || w.count(gcstest.Update) != 1 {
			t.Errorf("requests are %q, want one create and one update", w.ops(""))
		}
		w.release(lease)
	})
	// Used up: a lost lease is not brought back to life, not even one that
	// nobody has had.
	inWorld(t, func(t *testing.T, w *world) {
		lateReads(w, 10*time.Second)
		lease := w.machine("a").acquire(WithTTL(10 * time.Second))
		if w.count(gcstest.Create) != 2 || w.count(gcstest.Update) != 0 || w.count(gcstest.Delete) != 1 {
			t.Errorf("requests are %q, want create, delete, create", w.ops(""))
		}
		w.release(lease)
	})
	// The refresh fails, and so does the delete, until the caller gives up.
	inWorld(t, func(t *testing.T, w *world) {
		lateReads(w, 6*time.Second)
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		w.inject(gcstest.Delete, 1, gcstest.FailStatus(503))
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		w.server.Inject(gcstest.Fault{Op: gcstest.Create, Do: gcstest.FailStatus(503)})
		if lease, err := w.machine("a").lock(WithTTL(10 * time.Second)).Acquire(ctx); err == nil {
			t.Errorf("returned a lease with %v left", time.Until(lease.Expires()))
		}
		if _, ok := w.object(); ok {
			t.Error("left its object behind")
		}
	})
}

// TestSlowCreateIsOurs: the create succeeded while the machine was suspended.
// What it made is too old to be handed out, and can't be refreshed or deleted at
// first; it is met again as ours, not waited for as another's.
func TestSlowCreateIsOurs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		reply := gcstest.NewBarrier()
		w.inject(gcstest.Create, 1, gcstest.HoldReply(reply))
		w.inject(gcstest.Update, 1, gcstest.FailStatus(503))
		w.inject(gcstest.Delete, 1, gcstest.FailStatus(503))
		go func() {
			w.arrived(reply)
			a.clock.suspend(40 * time.Second)
			reply.Release()
		}()
		began := time.Now()
		lease := a.acquire()
		took(t, "getting it", began, 0, 2*time.Second)
		w.release(lease)
	})
}
