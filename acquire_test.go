package gcslock

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

var ctxKey = new(int)

// TestCost: nothing is asked of the server that the protocol does not need.
func TestCost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		if got := w.ops(""); got != "create" {
			t.Errorf("an uncontended acquisition is %q, want one create", got)
		}
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.ops(""); got != "create update" {
			t.Errorf("with a refresh it is %q, want one update more", got)
		}
		w.release(lease)
		if got := w.ops(""); got != "create update delete" {
			t.Errorf("with the release it is %q, want one delete more", got)
		}
	})
}

func TestObject(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithOperation("import"), WithMetadata(map[string]string{"run": "17"}),
			WithPayload("application/json", []byte(`{"ID":"x"}`)))
		obj, ok := w.object()
		if !ok || obj.Generation != lease.Token() {
			t.Errorf("object %v with generation %d, token %d", ok, obj.Generation, lease.Token())
		}
		if obj.CacheControl != "no-store" || obj.ContentType != "application/json" || string(obj.Content) != `{"ID":"x"}` {
			t.Errorf("cache control %q, content type %q, content %q", obj.CacheControl, obj.ContentType, obj.Content)
		}
		for key, want := range map[string]string{
			"owner": "a", "ttl": "1m0s", "operation": "import", "run": "17",
			"expires-at": timestamp(time.Now().Add(time.Minute)), "acquired-at": timestamp(time.Now()),
		} {
			if obj.Metadata[key] != want {
				t.Errorf("%s is %q, want %q", key, obj.Metadata[key], want)
			}
		}
		w.release(lease)
		if _, ok := w.object(); ok {
			t.Error("the object is still there after the release")
		}
		plain := w.machine("b").acquire()
		if obj, _ := w.object(); len(obj.Content) != 0 || obj.ContentType != "application/octet-stream" {
			t.Errorf("without a payload: content %q of type %q", obj.Content, obj.ContentType)
		}
		w.release(plain)
	})
}

// TestAcquireWaits: a waiter reads, with pauses, and creates only when the
// object is gone.
func TestAcquireWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.machine("a").acquire()
		time.AfterFunc(5*time.Minute, func() { w.release(first) })
		began := time.Now()
		second := w.machine("b").acquire()
		took(t, "the wait", began, 5*time.Minute, 5*time.Minute+time.Second)
		ops := w.ops("b")
		if !strings.HasPrefix(ops, "create get") || !strings.HasSuffix(ops, "get create") || strings.Count(ops, "create") != 2 {
			t.Errorf("the waiter's requests are %q, want reads between two creates", ops)
		}
		// Pauses of 100 ms to 1 s.
		if reads := strings.Count(ops, "get"); reads < 300 || reads > 3000 {
			t.Errorf("%d reads in 5 minutes", reads)
		}
		if first.Token() == second.Token() {
			t.Errorf("both acquisitions have the token %d", first.Token())
		}
		w.release(second)
	})
}

func TestWithWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.machine("a").acquire()
		time.AfterFunc(time.Hour, func() { w.release(first) })
		w.release(w.machine("b").acquire(WithWait(time.Minute, 2*time.Minute)))
		// Woken up also when the holder's ttl would run out.
		if reads := strings.Count(w.ops("b"), "get"); reads > 125 {
			t.Errorf("%d reads in an hour with pauses of a minute or two", reads)
		}
	})
}

func TestTryAcquire(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease, err := a.lock(WithOperation("import")).TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = w.machine("b").lock().TryAcquire(t.Context())
		held := isHeld(t, err, "a")
		isContext(t, err, nil)
		took(t, "a try", began, 0, 0)
		if got := w.ops("b"); got != "create get" {
			t.Errorf("a try costs %q, want create get", got)
		}
		if held.Holder.Generation != lease.Token() || held.Holder.Operation != "import" || held.Holder.TTL != time.Minute {
			t.Errorf("the holder is %+v", held.Holder)
		}
		says(t, err, `gs://jobs/nightly/lock is locked by "a"`, `operation "import"`, "since 2000-01-01", "last refresh 2000-01-01", "generation ")
		w.release(lease)
	})
}

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

// keepRefreshed edits the object's expiry until ctx ends, as a live holder does.
func keepRefreshed(w *world, ctx context.Context) {
	go func() {
		for sleep(ctx, 20*time.Second) == nil {
			w.server.Edit(testBucket, testObject, map[string]string{
				keyRefresh: randomID(refreshBytes), keyExpiresAt: timestamp(time.Now().Add(time.Minute)),
			})
		}
	}()
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

// TestNoUploadBuffer: the storage client's default allocates 16 MiB for each
// create.
func TestNoUploadBuffer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock()
		const cycles = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range cycles {
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.release(lease)
		}
		runtime.ReadMemStats(&after)
		if perCycle := (after.TotalAlloc - before.TotalAlloc) / cycles; perCycle > 1<<19 {
			t.Errorf("a cycle allocates %d bytes, the server's part included", perCycle)
		}
	})
}

// TestLeaseContext keeps the values of Acquire's context and nothing else.
func TestLeaseContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), ctxKey, "value"), time.Minute)
		lease, err := w.machine("a").lock().Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		if _, limited := lease.Context().Deadline(); limited || lease.Context().Err() != nil {
			t.Errorf("the lease's context has the caller's end: %v", lease.Context().Err())
		}
		if lease.Context().Value(ctxKey) != "value" {
			t.Error("the lease's context has lost the caller's values")
		}
		w.release(lease)
		if cause := context.Cause(lease.Context()); !errors.Is(cause, ErrNotHeld) || errors.Is(cause, ErrLockAbandoned) {
			t.Errorf("after the release the cause is %v", cause)
		}
	})
}

// TestManyWaiters: each gets its turn, and never two at once.
func TestManyWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		inside, turns := make(chan struct{}, 1), make(chan struct{}, 40)
		for range 8 {
			lock := w.machine("worker").lock()
			go func() {
				for range 5 {
					err := lock.Do(context.Background(), func(context.Context, *Lease) error {
						select {
						case inside <- struct{}{}:
						default:
							t.Error("two holders at once")
						}
						time.Sleep(50 * time.Millisecond)
						<-inside
						return nil
					})
					if err != nil {
						t.Error(err)
					}
					turns <- struct{}{}
				}
			}()
		}
		for range cap(turns) {
			<-turns
		}
		synctest.Wait()
	})
}
