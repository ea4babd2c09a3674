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
