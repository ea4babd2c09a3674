package gcslock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// Test429IsContention: under Cloud Storage's one change per second and object a
// waiter gets its turn, without an error.
func Test429IsContention(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.LimitRate(time.Second)
		a, b := w.machine("a").lock(), w.machine("b").lock()
		for range 5 {
			for _, l := range []*Lock{a, b} {
				lease, err := l.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.release(lease)
			}
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 0, gcstest.FailStatus(429))
		_, err := w.machine("a").lock().TryAcquire(t.Context())
		says(t, err, "create gs://jobs/nightly/lock", "429")
		if n := w.count(gcstest.Create); n != 3 {
			t.Errorf("a try sent %d creates, want 3", n)
		}
	})
}

// TestTryGivesUp: three attempts of a request, not more.
func TestTryGivesUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rival()
		w.inject(gcstest.Get, 0, gcstest.FailStatus(503))
		_, err := w.machine("a").lock().TryAcquire(t.Context())
		if !errors.Is(err, ErrLocked) {
			t.Errorf("the create met an object, and the error is %v", err)
		}
		says(t, err, "read gs://jobs/nightly/lock", "503")
		if got := w.ops("a"); got != "create get get get" {
			t.Errorf("requests are %q", got)
		}
	})
}

// TestMissingBucket ends at once, also where the bucket goes during the wait.
func TestMissingBucket(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lock, err := New(a.bucket("nowhere"), testObject)
		if err != nil {
			t.Fatal(err)
		}
		for _, acquire := range []func(context.Context) (*Lease, error){lock.Acquire, lock.TryAcquire} {
			w.server.ResetRequests()
			_, err = acquire(t.Context())
			says(t, err, "create gs://nowhere/nightly/lock", "the bucket does not exist")
			if errors.Is(err, ErrLocked) {
				t.Errorf("%v counts as locked", err)
			}
			if got := w.ops(""); got != "create" {
				t.Errorf("requests are %q, want one create", got)
			}
		}
	})
}

// TestPermissionErrorsEndTheWait names the request, the object and the
// permission, whichever request it is.
func TestPermissionErrorsEndTheWait(t *testing.T) {
	for _, tt := range []struct {
		op         gcstest.Op
		permission string
	}{
		{gcstest.Create, "storage.objects.create"},
		{gcstest.Get, "storage.objects.get"},
		{gcstest.Delete, "storage.objects.delete"},
	} {
		t.Run(string(tt.op), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.rival()
				time.Sleep(2 * time.Minute) // stale by now: the delete comes up
				w.server.Inject(gcstest.Fault{Op: tt.op, Do: gcstest.Forbid(tt.permission)})
				began := time.Now()
				_, err := w.machine("a").lock().Acquire(t.Context())
				took(t, "the error", began, 0, 0)
				says(t, err, string(tt.op)[:3], "gs://jobs/nightly/lock", "403", "needs permission "+tt.permission)
				if errors.Is(err, ErrLocked) {
					t.Errorf("%v counts as locked", err)
				}
			})
		})
	}
}

// TestHungRequests: each attempt has a limit of its own, whichever request it
// is.
func TestHungRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 1, gcstest.Hang())
		began := time.Now()
		w.release(w.machine("a").acquire())
		took(t, "a hung create", began, 10*time.Second, 11*time.Second)
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 1, gcstest.Hang())
		began := time.Now()
		w.release(w.machine("a").acquire(WithTTL(8 * time.Second)))
		took(t, "a hung create with a ttl of 8 s", began, 2*time.Second, 3*time.Second)
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.rival()
		w.inject(gcstest.Get, 1, gcstest.Hang())
		time.AfterFunc(time.Second, func() { w.server.Delete(testBucket, testObject) })
		began := time.Now()
		w.release(w.machine("a").acquire())
		took(t, "a hung read", began, 10*time.Second, 11*time.Second)
	})
}

// TestCancelledAcquireCleansUp: a create that was applied and not answered is
// undone, on a context of its own.
func TestCancelledAcquireCleansUp(t *testing.T) {
	for _, name := range []string{"free", "replaced", "storage fails at first"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.inject(gcstest.Create, 1, gcstest.HangReply())
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, func() {
					if _, ok := w.object(); !ok {
						t.Error("the create was not applied")
					}
					switch name {
					case "replaced":
						w.rival()
					case "storage fails at first":
						w.inject(gcstest.Get, 1, gcstest.FailStatus(503))
						w.inject(gcstest.Delete, 1, gcstest.FailStatus(503))
					}
					cancel()
				})
				_, err := w.machine("a").lock().Acquire(ctx)
				isContext(t, err, context.Canceled)
				obj, ok := w.object()
				if name == "replaced" {
					if obj.Metadata[keyOwner] != "rival" {
						t.Error("the competitor's object was removed")
					}
				} else if ok {
					t.Error("the cancelled acquisition left an object")
				}
			})
		})
	}
}

// TestCleanUpIsLimited: on a dead network a cancelled Acquire returns all the
// same.
func TestCleanUpIsLimited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Inject(gcstest.Fault{Do: gcstest.Hang()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := w.machine("a").lock().Acquire(ctx)
		isContext(t, err, context.DeadlineExceeded)
		if errors.Is(err, ErrLocked) {
			t.Errorf("%v: nobody was seen to hold it", err)
		}
		took(t, "giving up", began, time.Second, time.Second+cleanupLimit)
	})
}

func TestCancelledWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		began := time.Now()
		_, err := w.machine("b").lock(WithWait(time.Minute, time.Minute)).Acquire(ctx)
		took(t, "the wait", began, 10*time.Second, 10*time.Second)
		isHeld(t, err, "a")
		isContext(t, err, context.Canceled)
		says(t, err, "the wait ended: context canceled")
		w.release(lease)
	})
}

// TestCancelledWaitIsResolved: a read has told that the create of unknown
// outcome made nothing, so there is nothing to clean up.
func TestCancelledWaitIsResolved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		w.inject(gcstest.Create, 1, gcstest.DropRequest())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := w.machine("b").lock().Acquire(ctx)
		isHeld(t, err, "a")
		requests := w.server.Requests()
		if last := requests[len(requests)-1]; time.Since(last.Time) == 0 {
			t.Errorf("a %s at the end of the wait", last.Op)
		}
		w.release(lease)
	})
}

func TestMaxWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		began := time.Now()
		_, err := w.machine("b").lock(WithMaxWait(90 * time.Second)).Acquire(t.Context())
		took(t, "the wait", began, 90*time.Second, 90*time.Second)
		isHeld(t, err, "a")
		isContext(t, err, context.DeadlineExceeded)
		w.release(lease)
		// It bounds the wait, not the lease.
		lease = w.machine("b").acquire(WithMaxWait(time.Second))
		time.Sleep(time.Hour)
		w.release(lease)
	})
}

// TestOutage: nobody was seen to hold it, so it is not called locked, and the
// last failure is told.
func TestOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Inject(gcstest.Fault{Do: gcstest.FailStatus(503)})
		_, err := w.machine("a").lock(WithMaxWait(time.Hour)).Acquire(t.Context())
		isContext(t, err, context.DeadlineExceeded)
		if errors.Is(err, ErrLocked) {
			t.Errorf("%v counts as locked", err)
		}
		says(t, err, "503", "gs://jobs/nightly/lock")
		if len(err.Error()) > 300 {
			t.Errorf("an error of %d bytes after an hour", len(err.Error()))
		}
	})
	// Free by the last that was heard.
	inWorld(t, func(t *testing.T, w *world) {
		w.rival()
		time.AfterFunc(time.Second, func() {
			w.server.Delete(testBucket, testObject)
			w.inject(gcstest.Create, 0, gcstest.FailStatus(503))
		})
		_, err := w.machine("a").lock(WithMaxWait(time.Minute)).Acquire(t.Context())
		isContext(t, err, context.DeadlineExceeded)
		if errors.Is(err, ErrLocked) {
			t.Errorf("%v counts as locked", err)
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.machine("a").lock().Acquire(ctx)
		isContext(t, err, context.Canceled)
		says(t, err, "acquire gs://jobs/nightly/lock")
		if got := w.ops(""); got != "" {
			t.Errorf("requests %q on a context that had ended before", got)
		}
	})
}
