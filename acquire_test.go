package gcslock

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
		// One a second, after four seconds of more.
		if reads := strings.Count(ops, "get"); reads < 300 || reads > 296+40 {
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
