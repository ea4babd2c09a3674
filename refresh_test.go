package gcslock

import (
	"context"
	"encoding/json"
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

// TestFirstRefresh: it comes at random between a fifth of the interval and all of it,
// so that leases taken together are spread, but not within a second of the create
// if that can be helped. A lease that was passed on has no first one.
func TestFirstRefresh(t *testing.T) {
	lowest := func(time.Duration) time.Duration { return 0 }
	highest := func(n time.Duration) time.Duration { return n - 1 }
	for _, tt := range []struct {
		ttl    time.Duration
		random source
		want   time.Duration
	}{
		{time.Minute, highest, 4 * time.Second},
		{time.Minute, lowest, 20 * time.Second},
		{6 * time.Second, highest, time.Second},
		{minTTL, highest, 900 * time.Millisecond},
		{minTTL, lowest, time.Second},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			lock := w.machine("a").lock(WithTTL(tt.ttl))
			lock.random = tt.random
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, wait := range []time.Duration{tt.want - time.Millisecond, time.Millisecond} {
				time.Sleep(wait)
				synctest.Wait()
				if n := w.count(gcstest.Update); n != i {
					t.Errorf("ttl %v: %d refreshes, the first is to come after %v", tt.ttl, n, tt.want)
				}
			}
			lease.sequence = 2
			if d := lease.firstRefresh(); d < lock.refreshInterval*9/10 {
				t.Errorf("ttl %v: %v to the first refresh of a lease that was passed on", tt.ttl, d)
			}
			w.release(lease)
		})
	}
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

// TestRefreshWritesWhatChanges: what nobody can have changed is not written again,
// and what somebody may have, is.
func TestRefreshWritesWhatChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		for _, want := range []int{8, 2, 2} {
			w.server.ResetRequests()
			if err := lease.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			var body struct{ Metadata map[string]string }
			if err := json.Unmarshal(w.server.Requests()[0].Body, &body); err != nil {
				t.Fatal(err)
			}
			if len(body.Metadata) != want || body.Metadata[keyExpiresAt] == "" || body.Metadata[keyRefresh] == "" {
				t.Errorf("wrote %v, want %d keys", body.Metadata, want)
			}
		}
		w.release(lease)
	})
	for _, lost := range []bool{false, true} { // the reply of the refresh before the edit
		inWorld(t, func(t *testing.T, w *world) {
			lease := w.machine("a").acquire(WithManualRefresh())
			refresh := func() {
				if err := lease.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			refresh()
			refresh()
			if !lost {
				w.server.Edit(testBucket, testObject, map[string]string{keyTTL: "1s"})
			} else {
				w.inject(gcstest.Update, 1, gcstest.LoseReply())
				again := gcstest.NewBarrier()
				w.inject(gcstest.Update, 1, gcstest.Hold(again))
				go func() {
					w.arrived(again)
					w.server.Edit(testBucket, testObject, map[string]string{keyTTL: "1s"})
					again.Release()
				}()
				refresh()
			}
			refresh()
			if obj, _ := w.object(); obj.Metadata[keyTTL] != "1m0s" {
				t.Errorf("reply lost: %v: after the edit was met the metadata are %v", lost, obj.Metadata)
			}
			w.release(lease)
		})
	}
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
		lease.refresher.Wait()
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
