package gcslock

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestReleaseOnEndedContext: a real attempt, whatever became of the caller's
// context.
func TestReleaseOnEndedContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
		if _, ok := w.object(); ok {
			t.Error("the object is still there")
		}
	})
}

func TestReleaseIsIdempotent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		results := make(chan error)
		for range 4 {
			go func() { results <- lease.Release(context.Background()) }()
		}
		for range 4 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if n := w.count(gcstest.Delete); n != 1 {
			t.Errorf("%d deletes", n)
		}
		for name, err := range map[string]error{"Err": lease.Err(), "Refresh": lease.Refresh(t.Context())} {
			if !errors.Is(err, ErrNotHeld) || errors.Is(err, ErrLockAbandoned) {
				t.Errorf("%s after the release is %v, want ErrNotHeld", name, err)
			}
		}
	})
	// A failure stays the same one, too, and is not tried again.
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		w.inject(gcstest.Delete, 1, gcstest.Forbid("storage.objects.delete"))
		first := lease.Release(t.Context())
		if again := lease.Release(t.Context()); first == nil || again != first {
			t.Errorf("first %v, then %v", first, again)
		}
	})
}

// TestReleaseReplyLost: the delete was applied, its reply lost; the retry finds
// nothing, or a successor that it must leave alone. Both are a release.
func TestReleaseReplyLost(t *testing.T) {
	for _, name := range []string{"free", "successor"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire()
				w.inject(gcstest.Delete, 1, gcstest.LoseReply())
				again := gcstest.NewBarrier()
				w.inject(gcstest.Delete, 1, gcstest.Hold(again))
				go func() {
					w.arrived(again)
					if name == "successor" {
						w.rival()
					}
					again.Release()
				}()
				w.release(lease)
				if obj, ok := w.object(); ok != (name == "successor") || ok && obj.Metadata[keyOwner] != "rival" {
					t.Errorf("left is %v", obj.Metadata)
				}
			})
		})
	}
}

func TestReleaseRetries(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{
		"503": gcstest.FailStatus(503), "429": gcstest.FailStatus(429), "dropped": gcstest.DropRequest(), "hung": gcstest.Hang(),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire()
				w.inject(gcstest.Delete, 1, fault)
				w.release(lease)
				if _, ok := w.object(); ok {
					t.Error("the object is still there")
				}
			})
		})
	}
}

// TestReleaseFails: bounded, and the error says until when others wait.
func TestReleaseFails(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{"503": gcstest.FailStatus(503), "dead network": gcstest.Hang()} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire()
				time.Sleep(time.Second)
				w.inject(gcstest.Delete, 0, fault)
				began := time.Now()
				err := lease.Release(t.Context())
				took(t, "the release", began, releaseLimit-time.Second, releaseLimit)
				says(t, err, "delete gs://jobs/nightly/lock", "others wait until about 2000-01-01T00:01:02Z")
				if errors.Is(err, ErrLockAbandoned) {
					t.Errorf("%v: nothing was lost", err)
				}
				// They do get in then.
				w.server.ResetRequests()
				time.Sleep(time.Until(moment(t, "2000-01-01T00:01:02.1Z")))
				if _, err := w.machine("b").lock().TryAcquire(t.Context()); err == nil {
					t.Error("the take-over needs the delete that fails here")
				}
				if w.ops("b") != "create get delete get delete get delete" && name == "503" {
					t.Errorf("the competitor's requests are %q: it did not find the lock stale", w.ops("b"))
				}
			})
		})
	}
}

// TestReleaseForbidden: told apart, at once.
func TestReleaseForbidden(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		w.inject(gcstest.Delete, 0, gcstest.Forbid("storage.objects.delete"))
		began := time.Now()
		err := lease.Release(t.Context())
		took(t, "the release", began, 0, 0)
		says(t, err, "needs permission storage.objects.delete", "others wait until")
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.server.CreateBucket(testBucket, gcstest.Retention(time.Hour))
		lease := w.machine("a").acquire()
		says(t, lease.Release(t.Context()), "retention policy")
		time.Sleep(2 * time.Minute)
		_, err := w.machine("b").lock().Acquire(t.Context())
		says(t, err, "retention policy", "stale")
	})
	inWorld(t, func(t *testing.T, w *world) {
		obj := w.rival()
		obj.TemporaryHold = true
		w.server.Put(testBucket, testObject, obj)
		time.Sleep(2 * time.Minute)
		_, err := w.machine("b").lock().Acquire(t.Context())
		says(t, err, "release the hold")
	})
}

// TestReleaseFindsLoss: the object is not ours any more, and no other's is
// deleted.
func TestReleaseFindsLoss(t *testing.T) {
	for _, name := range []string{"deleted", "replaced"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire()
				w.server.Delete(testBucket, testObject)
				if name == "replaced" {
					w.rival()
				}
				isLoss(t, "Release", lease.Release(t.Context()))
				isLoss(t, "Release again", lease.Release(t.Context()))
				isLoss(t, "Err", lease.Err())
				if _, ok := w.object(); ok != (name == "replaced") {
					t.Error("the successor's object was deleted")
				}
			})
		})
	}
}

// TestReleaseOfExpired: no timer has told of the end yet, but it is one.
func TestReleaseOfExpired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		a.clock.suspend(time.Hour)
		isLoss(t, "Release", lease.Release(t.Context()))
		isLoss(t, "the cause", context.Cause(lease.Context()))
		if _, ok := w.object(); ok {
			t.Error("no attempt to delete it, so that others need not wait")
		}
	})
}

// TestReleaseOfEdited: our nonce under another version is still ours.
func TestReleaseOfEdited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		w.server.Edit(testBucket, testObject, map[string]string{"note": "hello"})
		w.inject(gcstest.Get, 1, gcstest.FailStatus(503))
		w.release(lease)
		if _, ok := w.object(); ok {
			t.Error("the object is still there")
		}
	})
	// A read that is forbidden leaves it open.
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		w.server.Edit(testBucket, testObject, nil)
		w.inject(gcstest.Get, 0, gcstest.Forbid("storage.objects.get"))
		says(t, lease.Release(t.Context()), "needs permission storage.objects.get")
	})
}

// TestReleaseDuringRefresh: the refresh under way is cancelled and waited for;
// it has landed, and the release deletes what it left.
func TestReleaseDuringRefresh(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		w.inject(gcstest.Update, 1, gcstest.HangReply())
		for w.count(gcstest.Update) == 0 {
			time.Sleep(time.Second)
		}
		began := time.Now()
		w.release(lease)
		took(t, "the release", began, 0, 0)
		lease.mu.Lock()
		if lease.refreshing {
			t.Error("the refresher has not ended")
		}
		lease.mu.Unlock()
		if got := w.ops(""); got != "create update delete get delete" {
			t.Errorf("requests are %q, want create update delete get delete", got)
		}
		time.Sleep(time.Hour)
		if _, ok := w.object(); ok || w.count(gcstest.Update) != 1 {
			t.Error("something went on after the release")
		}
	})
}

// TestReleaseDuringCallersRefresh: so with one that the caller sent, on a
// context of its own.
func TestReleaseDuringCallersRefresh(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		w.inject(gcstest.Update, 1, gcstest.Hang())
		refreshed := make(chan error)
		go func() { refreshed <- lease.Refresh(context.Background()) }()
		synctest.Wait()
		began := time.Now()
		w.release(lease)
		took(t, "the release", began, 0, 0)
		if err := <-refreshed; !errors.Is(err, ErrNotHeld) {
			t.Errorf("the refresh ends with %v, want ErrNotHeld", err)
		}
	})
}

// TestReleaseWaitsForRefresh: one that the network delivers late, whatever its
// context, comes before the delete and not after it.
func TestReleaseWaitsForRefresh(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire(WithManualRefresh())
		a.between = func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				time.Sleep(time.Second)
				r = r.WithContext(context.WithoutCancel(r.Context()))
			}
			return next.RoundTrip(r)
		}
		go func() { _ = lease.Refresh(context.Background()) }()
		synctest.Wait()
		w.release(lease)
		if got := w.ops(""); got != "create update delete" && got != "create update delete get delete" {
			t.Errorf("requests are %q, want no delete before the update", got)
		}
	})
}

// TestReleaseMeets412: a server that answers so, and not with 404, where the
// object is another's.
func TestReleaseMeets412(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		w.rival()
		w.inject(gcstest.Delete, 1, gcstest.FailStatus(412))
		isLoss(t, "Release", lease.Release(t.Context()))
		if obj, ok := w.object(); !ok || obj.Metadata[keyOwner] != "rival" {
			t.Error("the successor's object was deleted")
		}
	})
}

// TestHeldUntil counts from the last refresh that may have landed, not from one
// that certainly did not.
func TestHeldUntil(t *testing.T) {
	for name, tt := range map[string]struct {
		fault gcstest.Action
		until string
	}{
		"may have landed": {gcstest.DropRequest(), "2000-01-01T00:01:12Z"},
		"refused":         {gcstest.FailStatus(429), "2000-01-01T00:01:02Z"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				l := w.machine("a").older(nil)
				if err := l.Lock(t.Context(), time.Minute); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				w.inject(gcstest.Update, 1, tt.fault)
				if err := l.RefreshLock(t.Context()); err == nil {
					t.Error("the refresh succeeded")
				}
				w.inject(gcstest.Delete, 1, gcstest.Forbid("storage.objects.delete"))
				says(t, l.Unlock(t.Context()), "others wait until about "+tt.until)
			})
		})
	}
}

// TestReleaseLeavesNoCopy on a versioned bucket.
func TestReleaseLeavesNoCopy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.CreateBucket(testBucket, gcstest.Versioned())
		w.release(w.machine("a").acquire())
		if n := len(w.server.Noncurrent(testBucket, testObject)); n != 0 {
			t.Errorf("%d noncurrent copies left", n)
		}
	})
}

// TestContextEndsBeforeRelease: work that watches the context is told before
// the object goes.
func TestContextEndsBeforeRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		hold := gcstest.NewBarrier()
		w.inject(gcstest.Delete, 1, gcstest.Hold(hold))
		go func() {
			w.arrived(hold)
			if lease.Context().Err() == nil {
				t.Error("the delete is under way, and the context is not cancelled")
			}
			hold.Release()
		}()
		w.release(lease)
	})
}
