package gcslock

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func TestKeepAlive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		time.Sleep(time.Hour)
		if err := lease.Err(); err != nil {
			t.Fatal(err)
		}
		// Every 18 to 20 s.
		if n := w.count(gcstest.Update); n < 180 || n > 200 {
			t.Errorf("%d refreshes in an hour, want 180 to 200", n)
		}
		if n := len(w.server.Requests()); n != 1+w.count(gcstest.Update) {
			t.Errorf("requests are %q, want one create and updates", w.ops(""))
		}
		pauses := map[time.Duration]bool{}
		var last time.Time
		for _, r := range w.server.Requests() {
			pauses[r.Time.Sub(last)], last = true, r.Time
		}
		if len(pauses) < 100 {
			t.Errorf("%d different pauses: no jitter", len(pauses))
		}
		w.release(lease)
	})
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithRefreshInterval(10 * time.Second))
		time.Sleep(time.Hour)
		if n := w.count(gcstest.Update); n < 360 || n > 400 {
			t.Errorf("%d refreshes in an hour, want 360 to 400", n)
		}
		w.release(lease)
	})
}

// TestRefreshWrites renews what competitors judge by, and counts its own
// validity from before the request was sent.
func TestRefreshWrites(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire(WithManualRefresh())
		before, _ := w.object()
		time.Sleep(10 * time.Second)
		w.inject(gcstest.Update, 1, gcstest.DelayReply(5*time.Second))
		sent := time.Now()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !lease.Expires().Equal(sent.Add(54 * time.Second)) {
			t.Errorf("expires %v after the refresh was sent, want 54 s", lease.Expires().Sub(sent))
		}
		after, _ := w.object()
		if after.Metadata[keyExpiresAt] != timestamp(sent.Add(time.Minute)) || after.Metadata[keyRefresh] == before.Metadata[keyRefresh] {
			t.Errorf("metadata are %v after %v", after.Metadata, before.Metadata)
		}
		if after.Metadata[keyNonce] != before.Metadata[keyNonce] || after.Metadata[keyAcquiredAt] != before.Metadata[keyAcquiredAt] {
			t.Errorf("the refresh changed what stays: %v after %v", after.Metadata, before.Metadata)
		}
		if after.Generation != lease.Token() || after.Metageneration != before.Metageneration+1 {
			t.Errorf("object at %d/%d after %d/%d", after.Generation, after.Metageneration, before.Generation, before.Metageneration)
		}
		w.release(lease)
	})
}

// TestRefreshReplyLost: the update was applied, its reply lost. The next one
// fails its precondition, and the read back tells that the object is ours.
func TestRefreshReplyLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		time.Sleep(10 * time.Second)
		w.inject(gcstest.Update, 1, gcstest.LoseReply())
		sent := time.Now()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.ops(""); got != "create update update get" {
			t.Errorf("requests are %q, want update update get", got)
		}
		// From before the attempt that landed, not the one that read it back.
		if !lease.Expires().Equal(sent.Add(54 * time.Second)) {
			t.Errorf("expires %v after the attempt that landed, want 54 s", lease.Expires().Sub(sent))
		}
		if err := lease.Refresh(t.Context()); err != nil {
			t.Errorf("the refresh after that: %v", err)
		}
		w.release(lease)
	})
}

// TestRefreshReplyLostToCompetitor: between our update, whose reply was lost,
// and the next one the object was replaced, or removed.
func TestRefreshReplyLostToCompetitor(t *testing.T) {
	for _, name := range []string{"replaced", "removed"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire(WithManualRefresh())
				w.inject(gcstest.Update, 1, gcstest.LoseReply())
				again := gcstest.NewBarrier()
				w.inject(gcstest.Update, 1, gcstest.Hold(again))
				go func() {
					w.arrived(again)
					if w.server.Delete(testBucket, testObject); name == "replaced" {
						w.rival()
					}
					again.Release()
				}()
				isLoss(t, "Refresh", lease.Refresh(t.Context()))
				w.lost(lease)
				isLoss(t, "Release", lease.Release(t.Context()))
				if obj, ok := w.object(); ok != (name == "replaced") || ok && obj.Metadata[keyOwner] != "rival" {
					t.Errorf("left is %v", obj.Metadata)
				}
			})
		})
	}
}

// TestRefreshSentTwice: the transport repeats the update, and we see the second
// one's 412.
func TestRefreshSentTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire(WithManualRefresh())
		a.between = twice(http.MethodPatch)
		if err := lease.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		a.between = nil
		w.release(lease)
	})
}

// TestRefreshRetries: what fails for now is tried again soon, not at the next
// turn.
func TestRefreshRetries(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{
		"503": gcstest.FailStatus(503), "429": gcstest.FailStatus(429), "dropped": gcstest.DropRequest(),
		"403": gcstest.Forbid("storage.objects.update"), "401": gcstest.FailStatus(401), "garbage": gcstest.GarbleReply(),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire(WithManualRefresh())
				w.inject(gcstest.Update, 2, fault)
				began := time.Now()
				if err := lease.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				took(t, "the refresh", began, 100*time.Millisecond, 3*time.Second)
				w.release(lease)
			})
		})
	}
}

// TestOutageShorterThanTTL: the holder carries on.
func TestOutageShorterThanTTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		outage := w.server.Inject(gcstest.Fault{Do: gcstest.DropRequest()})
		time.Sleep(50 * time.Second)
		outage.Remove()
		time.Sleep(time.Hour)
		if err := lease.Err(); err != nil {
			t.Errorf("lost after an outage of 50 s: %v", err)
		}
		w.release(lease)
	})
}

// TestOutageLongerThanTTL: the holder is told in time, by its own clock, and
// what it lost stays lost.
func TestOutageLongerThanTTL(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{"refused": gcstest.FailStatus(503), "dead network": gcstest.Hang()} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				began := time.Now()
				lease := w.machine("a").acquire()
				outage := w.server.Inject(gcstest.Fault{Do: fault})
				<-lease.Context().Done()
				took(t, "notice of the loss", began, 54*time.Second, 54*time.Second)
				isLoss(t, "the cause", context.Cause(lease.Context()))
				says(t, lease.Err(), "gs://jobs/nightly/lock", "validity of 54s")
				outage.Remove()
				w.server.ResetRequests()
				w.lost(lease)
				time.Sleep(time.Hour)
				if got := w.ops(""); got != "" {
					t.Errorf("a lost lease still sends %q", got)
				}
				isLoss(t, "Release", lease.Release(t.Context()))
				if got := w.ops(""); got != "delete" {
					t.Errorf("the release of a lost lease sends %q, want one delete", got)
				}
			})
		})
	}
}

// TestHungRefresh: one request that hangs does not cost the lease, at the
// shortest ttl neither.
func TestHungRefresh(t *testing.T) {
	for _, ttl := range []time.Duration{3 * time.Second, time.Minute, time.Hour} {
		inWorld(t, func(t *testing.T, w *world) {
			lease := w.machine("a").acquire(WithTTL(ttl))
			w.inject(gcstest.Update, 1, gcstest.Hang())
			time.Sleep(2 * ttl)
			if err := lease.Err(); err != nil {
				t.Errorf("ttl %v: %v", ttl, err)
			}
			w.release(lease)
		})
	}
}

// TestObjectLost: somebody deletes or replaces the object under the holder.
func TestObjectLost(t *testing.T) {
	for _, name := range []string{"deleted", "replaced"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire()
				w.server.Delete(testBucket, testObject)
				want := "its object was deleted"
				if name == "replaced" {
					w.rival()
					want = `it is now held by "rival"`
				}
				began := time.Now()
				<-lease.Context().Done()
				took(t, "notice", began, 18*time.Second, 20*time.Second)
				w.lost(lease)
				says(t, lease.Err(), want)
				before := w.ops("")
				isLoss(t, "Release", lease.Release(t.Context()))
				if got := w.ops(""); got != before {
					t.Errorf("a release that can delete nothing sent %q after %q", got, before)
				}
				if _, ok := w.object(); ok != (name == "replaced") {
					t.Error("the holder re-created its object, or removed its successor's")
				}
			})
		})
	}
}

// TestObjectEdited: our nonce under a version that is not ours. The validity
// stays as it was, and the next refresh follows at once and undoes the edit.
func TestObjectEdited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		time.Sleep(10 * time.Second)
		w.server.Edit(testBucket, testObject, map[string]string{keyTTL: "1s", keyExpiresAt: "never", "note": "hello"})
		// The refresh after the edit fails: the edit alone must not renew.
		w.server.Inject(gcstest.Fault{Op: gcstest.Update, Skip: 1, Times: 1, Do: gcstest.FailStatus(503)})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		expires := lease.Expires()
		if err := lease.Refresh(ctx); err == nil {
			t.Error("the failed refresh succeeded")
		}
		if !lease.Expires().Equal(expires) {
			t.Errorf("an edit moved the validity from %v to %v", expires, lease.Expires())
		}
		sent := time.Now()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		took(t, "the refresh", sent, 0, 0)
		obj, _ := w.object()
		if obj.Metadata[keyTTL] != "1m0s" || obj.Metadata[keyExpiresAt] != timestamp(sent.Add(time.Minute)) || obj.Metadata["note"] != "hello" {
			t.Errorf("after the refresh the metadata are %v", obj.Metadata)
		}
		w.release(lease)
	})
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		w.server.Edit(testBucket, testObject, map[string]string{"note": "hello"})
		began := time.Now()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		took(t, "the refresh", began, 0, 0)
		if got := w.ops(""); got != "create update get update" {
			t.Errorf("requests are %q, want update get update", got)
		}
		w.release(lease)
	})
}

// TestReadBackFails: a 412 and a read that fails decide nothing.
func TestReadBackFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		w.server.Edit(testBucket, testObject, nil)
		w.inject(gcstest.Get, 2, gcstest.FailStatus(503))
		if err := lease.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		w.release(lease)
	})
}

// TestSuspend: the clock that goes on in suspend jumps, the monotonic one and
// the timers do not.
func TestSuspend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		time.Sleep(time.Second)
		a.clock.suspend(53 * time.Second)
		began := time.Now()
		isLoss(t, "Err at once", lease.Err())
		took(t, "Err", began, 0, 0)
		w.lost(lease)
	})
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		time.Sleep(time.Second)
		a.clock.suspend(time.Hour)
		began := time.Now()
		<-lease.Context().Done()
		took(t, "notice without a call", began, 0, 6*time.Second)
		w.lost(lease)
	})
	// Shorter than the validity: the overdue refresh follows within a tenth of
	// the ttl.
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		time.Sleep(time.Second)
		a.clock.suspend(40 * time.Second)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := w.count(gcstest.Update); n != 1 {
			t.Errorf("%d refreshes within a tenth of the ttl after waking up, want 1", n)
		}
		if left := time.Until(lease.Expires().Add(-40 * time.Second)); left < 48*time.Second {
			t.Errorf("%v left after the refresh", left)
		}
		w.release(lease)
	})
}

// TestWallClockSteps change nothing for a holder.
func TestWallClockSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.machine("a")
			lease := a.acquire()
			for range 10 {
				time.Sleep(10 * time.Second)
				a.clock.step(step)
			}
			time.Sleep(10 * time.Minute)
			if err := lease.Err(); err != nil {
				t.Errorf("lost by steps of %v: %v", step, err)
			}
			w.release(lease)
		})
	}
}

// TestLateReply: the refresh was applied, but by the time that its reply is
// looked at the validity it was to renew has ended. Lost is lost.
func TestLateReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire(WithManualRefresh())
		reply := gcstest.NewBarrier()
		w.inject(gcstest.Update, 1, gcstest.HoldReply(reply))
		go func() {
			w.arrived(reply)
			a.clock.suspend(54 * time.Second)
			reply.Release()
		}()
		isLoss(t, "Refresh", lease.Refresh(t.Context()))
		w.lost(lease)
		// The release knows the version that the late reply told.
		isLoss(t, "Release", lease.Release(t.Context()))
		if _, ok := w.object(); ok {
			t.Error("the release did not delete the version that it knows")
		}
	})
}

// TestManualRefresh: nothing refreshes but the caller, and the lease ends by
// itself.
func TestManualRefresh(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		time.Sleep(40 * time.Second)
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-lease.Context().Done()
		took(t, "the end", began, 54*time.Second, 54*time.Second)
		if got := w.ops(""); got != "create update" {
			t.Errorf("requests are %q", got)
		}
		w.lost(lease)
	})
}

// TestMaxRefreshFailures counts refreshes in a row, not attempts.
func TestMaxRefreshFailures(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh(), WithTTL(time.Hour), WithRefreshInterval(10*time.Second), WithMaxRefreshFailures(1))
		for range 3 { // a success in between starts the count again
			outage := w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
			err := lease.Refresh(t.Context())
			says(t, err, "503")
			if lease.Err() != nil {
				t.Fatalf("lost by one failure: %v", lease.Err())
			}
			outage.Remove()
			if err := lease.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		_ = lease.Refresh(t.Context())
		err := lease.Refresh(t.Context())
		isLoss(t, "the second failure in a row", err)
		says(t, err, "2 refreshes failed in a row", "503")
		w.lost(lease)
	})
	// The automatic refresher counts its turns in the same way.
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		lease := w.machine("a").acquire(WithTTL(time.Hour), WithRefreshInterval(10*time.Second), WithMaxRefreshFailures(2))
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		<-lease.Context().Done()
		// The first turn comes after 9 to 10 s, and each takes 10 s.
		took(t, "three turns", began, 39*time.Second, 41*time.Second)
		w.lost(lease)
	})
}

func TestMaxHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		lease := w.machine("a").acquire(WithMaxHold(10 * time.Minute))
		<-lease.Context().Done()
		took(t, "the hold", began, 10*time.Minute, 10*time.Minute)
		says(t, context.Cause(lease.Context()), "longer than 10m0s", "WithMaxHold")
		w.lost(lease)
		if _, ok := w.object(); !ok {
			t.Fatal("the object was deleted under work that may still run")
		}
		n := w.count(gcstest.Update)
		isLoss(t, "Release", lease.Release(t.Context()))
		if _, ok := w.object(); ok || w.count(gcstest.Update) != n {
			t.Error("refreshed after the end, or not deleted by the release")
		}
	})
}

// TestRefreshContext: the caller's context ends the call, not the lease.
func TestRefreshContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		isContext(t, lease.Refresh(ctx), context.Canceled)
		if got := w.ops(""); got != "create" {
			t.Errorf("requests are %q", got)
		}
		w.inject(gcstest.Update, 0, gcstest.Hang())
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := lease.Refresh(ctx)
		took(t, "a refresh", began, time.Second, time.Second)
		isContext(t, err, context.DeadlineExceeded)
		says(t, err, "update gs://jobs/nightly/lock")

		// While another one has the turn.
		go func() { _ = lease.Refresh(t.Context()) }()
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		isContext(t, lease.Refresh(ctx), context.DeadlineExceeded)
		if lease.Err() != nil {
			t.Errorf("the lease ended with the caller's context: %v", lease.Err())
		}
		w.release(lease)
	})
}

// TestLossIsReportedOnce: the first reason stands.
func TestLossIsReportedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		log := newLog()
		lease := w.machine("a").acquire(WithLogger(log.logger))
		first := lease.lose(&lossError{reason: "first"})
		if second := lease.lose(&lossError{reason: "second"}); second != first || lease.Err() != first || context.Cause(lease.Context()) != first {
			t.Errorf("the second loss is %v, Err %v", second, lease.Err())
		}
		log.only(t, "lock lost")
	})
}

// TestPendingIsBounded: a long outage does not grow what is remembered.
func TestPendingIsBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithTTL(24*time.Hour), WithRefreshInterval(time.Minute))
		w.inject(gcstest.Update, 0, gcstest.DropRequest())
		time.Sleep(10 * time.Minute)
		lease.mu.Lock()
		n := len(lease.pending)
		lease.mu.Unlock()
		if n == 0 || n > maxPending {
			t.Errorf("%d attempts remembered, want up to %d", n, maxPending)
		}
		lease.lose(&lossError{reason: "test over"})
		<-lease.refresher
	})
}

// TestNoCopyIsRefreshed: on a versioned bucket the holder of a lock that
// somebody deleted must not find, and refresh, the noncurrent copy.
func TestNoCopyIsRefreshed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.CreateBucket(testBucket, gcstest.Versioned())
		lease := w.machine("a").acquire()
		w.server.Delete(testBucket, testObject)
		if n := len(w.server.Noncurrent(testBucket, testObject)); n != 1 {
			t.Fatalf("%d noncurrent copies, want 1", n)
		}
		<-lease.Context().Done()
		w.lost(lease)
	})
}
