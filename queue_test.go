package gcslock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// A result is what an Acquire in another goroutine returned.
type result struct {
	number int
	lease  *Lease
	err    error
}

// comers has n goroutines ask for the lock, a millisecond apart.
func comers(ctx context.Context, lock *Lock, n int) <-chan result {
	results := make(chan result, n)
	for i := range n {
		time.Sleep(time.Millisecond)
		go func() {
			lease, err := lock.Acquire(ctx)
			results <- result{i, lease, err}
		}()
	}
	synctest.Wait()
	return results
}

// inOrder has them all get it, one after the other, and each hold it for a while.
func (w *world) inOrder(results <-chan result, first, last int) []*Lease {
	w.Helper()
	var leases []*Lease
	for want := first; want <= last; want++ {
		r := <-results
		if r.err != nil || r.number != want {
			w.Fatalf("number %d came next, with %v, want number %d", r.number, r.err, want)
		}
		for _, former := range leases {
			if former.Err() == nil {
				w.Error("two holders at once")
			}
		}
		time.Sleep(30 * time.Millisecond)
		w.release(r.lease)
		leases = append(leases, r.lease)
	}
	return leases
}

// TestQueueOrder: through one Lock whoever came first goes first, and only that one
// asks the bucket.
func TestQueueOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rival := w.machine("a").acquire()
		results := comers(t.Context(), w.machine("b").lock(), 10)
		time.Sleep(30 * time.Second)
		if ops := strings.Fields(w.ops("b")); len(ops) > 60 {
			t.Errorf("ten that wait sent %d requests in 30 s, want those of one", len(ops))
		}
		w.release(rival)
		w.inOrder(results, 0, 9)
	})
}

// TestQueueBehindOwnLease: nothing is asked while a lease of the same Lock is held,
// and each turn costs two requests.
func TestQueueBehindOwnLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock()
		lease, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		results := comers(t.Context(), lock, 5)
		time.Sleep(10 * time.Minute)
		if ops := w.ops("a"); strings.Contains(ops, "get") || strings.Count(ops, "create") != 1 {
			t.Errorf("requests are %q, want a create and updates", ops)
		}
		before := len(w.server.Requests())
		w.release(lease)
		w.inOrder(results, 0, 4)
		if got := len(w.server.Requests()) - before; got != 1+5*2 {
			t.Errorf("%d requests for a release and five turns, want 11: %q", got, w.ops("a"))
		}
	})
}

// TestQueueContextEnds: the wait for one's turn is a wait as any other.
func TestQueueContextEnds(t *testing.T) {
	t.Run("behind a lease of the same Lock", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			lock := w.machine("a").lock(WithMaxWait(time.Minute), WithOperation("import"))
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			results := comers(t.Context(), lock, 3)
			for range 3 {
				r := <-results
				held := isHeld(t, r.err, "a")
				isContext(t, r.err, context.DeadlineExceeded)
				if held.Holder.Generation != lease.Token() || held.Holder.Stale || held.Holder.Operation != "import" ||
					!held.Holder.ExpiresAt.After(time.Now()) || held.Holder.Bucket != testBucket {
					t.Errorf("number %d: the holder is %+v", r.number, held.Holder)
				}
			}
			took(t, "their wait", began, time.Minute, time.Minute+3*time.Millisecond)
			w.release(lease)
			if again, err := lock.TryAcquire(t.Context()); err != nil {
				t.Errorf("after the release: %v", err)
			} else {
				w.release(again)
			}
		})
	})
	t.Run("behind one who meets a rival", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			rival := w.machine("rival").acquire()
			lock := w.machine("b").lock()
			ctx, cancel := context.WithCancel(t.Context())
			patient := comers(t.Context(), lock, 1)
			hasty := comers(ctx, lock, 2)
			last := comers(t.Context(), lock, 1)
			time.Sleep(time.Second)
			cancel()
			for range 2 {
				if r := <-hasty; isHeld(t, r.err, "rival").Holder.Generation != rival.Token() {
					t.Errorf("it says %v", r.err)
				}
			}
			w.release(rival)
			w.inOrder(patient, 0, 0)
			w.inOrder(last, 0, 0) // nobody waits for the turn of who has gone
		})
	})
	t.Run("all at once", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.rival()
			ctx, cancel := context.WithCancel(t.Context())
			results := comers(ctx, w.machine("b").lock(), 20)
			time.Sleep(time.Second)
			cancel()
			for range 20 {
				isHeld(t, (<-results).err, "rival")
			}
		})
	})
	t.Run("what was known is forgotten", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			rival := w.machine("rival").acquire()
			lock := w.machine("b").lock(WithMaxWait(time.Second))
			_, err := lock.Acquire(t.Context())
			isHeld(t, err, "rival")
			w.release(rival)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := lock.Acquire(ctx); errors.Is(err, ErrLocked) || !errors.Is(err, context.Canceled) {
				t.Errorf("with an ended context on a free lock: %v", err)
			}
		})
	})
}

// TestTurnComesAsContextEnds: it is passed on.
func TestTurnComesAsContextEnds(t *testing.T) {
	for range 50 {
		inWorld(t, func(t *testing.T, w *world) {
			rival := w.machine("rival").acquire()
			lock := w.machine("b").lock()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			results := comers(ctx, lock, 3) // the first one's turn ends when their contexts do
			patient := comers(t.Context(), lock, 1)
			for range 3 {
				isHeld(t, (<-results).err, "rival")
			}
			w.release(rival)
			w.inOrder(patient, 0, 0)
		})
	}
}

// TestLossUnderQueue: who waits for a lease of the same Lock goes to the bucket when
// it is lost, released or not.
func TestLossUnderQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock(WithLocalHandoff(5, time.Hour))
		lease, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		results := comers(t.Context(), lock, 2)
		w.server.Delete(testBucket, testObject)
		began := time.Now()
		r := <-results
		took(t, "the wait", began, 0, 21*time.Second)
		if r.err != nil || r.number != 0 || r.lease.Token() == lease.Token() || r.lease.Sequence() != 1 {
			t.Fatalf("number %d got %+v, %v", r.number, r.lease, r.err)
		}
		isLoss(t, "the release", lease.Release(t.Context()))
		if r.lease.Err() != nil {
			t.Error("the release of the lost lease ended the next one")
		}
		w.release(r.lease)
		w.inOrder(results, 1, 1)
	})
}

// TestQueueBehindUnwatchedLease: the caller-driven form has no watchdog that would
// tell of a loss. A waiter waits for the validity, and then asks the bucket.
func TestQueueBehindUnwatchedLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock()
		if err := lock.Lock(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		lease, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		took(t, "the takeover", began, time.Minute, time.Minute+3*time.Second)
		w.release(lease)
		isLoss(t, "Unlock", lock.Unlock(t.Context()))
	})
}

// TestTryDoesNotQueue: one round, at once, whoever waits; and what it wins is waited
// for as any other.
func TestTryDoesNotQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rival := w.machine("rival").acquire()
		lock := w.machine("b").lock()
		results := comers(t.Context(), lock, 2)
		before := len(w.server.Requests())
		began := time.Now()
		_, err := lock.TryAcquire(t.Context())
		isHeld(t, err, "rival")
		isHeld(t, lock.Lock(t.Context(), 0), "rival")
		took(t, "two tries", began, 0, 0)
		if got := len(w.server.Requests()) - before; got != 4 {
			t.Errorf("%d requests of two tries, want 4", got)
		}
		w.release(rival)
		lease, err := lock.TryAcquire(t.Context())
		if err != nil {
			t.Fatalf("on a free lock, while others wait: %v", err)
		}
		time.Sleep(2 * time.Second) // they meet it
		before = w.count("get")
		time.Sleep(time.Minute)
		if got := w.count("get") - before; got != 0 {
			t.Errorf("%d looks at a lease of the same Lock, want none", got)
		}
		w.release(lease)
		w.inOrder(results, 0, 1)
	})
}

// TestReclaimSparesItsOwn: a lease of the same Lock is no leftover.
func TestReclaimSparesItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.crash(a.acquire())
		lock := a.lock(WithReclaim())
		lease, err := lock.TryAcquire(t.Context())
		if err != nil {
			t.Fatalf("of a former process: %v", err)
		}
		_, err = lock.TryAcquire(t.Context())
		isHeld(t, err, "a")
		results := comers(t.Context(), lock, 3)
		time.Sleep(time.Minute)
		if err := lease.Verify(t.Context()); err != nil {
			t.Errorf("it was taken over: %v", err)
		}
		w.release(lease)
		w.inOrder(results, 0, 2)
	})
}

// TestReclaimSparesACreateUnderWay of another goroutine's, which is about to have
// the lock.
func TestReclaimSparesACreateUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 1, gcstest.DelayReply(5*time.Second))
		lock := w.machine("a").lock(WithReclaim())
		results := comers(t.Context(), lock, 1)
		_, err := lock.TryAcquire(t.Context())
		isHeld(t, err, "a")
		leases := w.inOrder(results, 0, 0)
		if !errors.Is(leases[0].Err(), ErrNotHeld) {
			t.Errorf("it ended with %v", leases[0].Err())
		}
	})
}

// TestPanickingObserver: the others' turns come all the same.
func TestPanickingObserver(t *testing.T) {
	for _, kind := range []EventKind{EventContended, EventReleased} {
		for _, opts := range [][]Option{nil, {WithLocalHandoff(5, time.Hour)}} {
			inWorld(t, func(t *testing.T, w *world) {
				panics := 1
				lock := w.machine("a").lock(append(opts, WithObserver(ObserverFunc(func(_ context.Context, e Event) {
					if e.Kind == kind && panics > 0 {
						panics--
						panic("observer")
					}
				})))...)
				lease, err := lock.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				caught := make(chan any, 2)
				catch := func(f func()) {
					defer func() { caught <- recover() }()
					f()
				}
				if kind == EventContended {
					go catch(func() { _, _ = lock.Acquire(t.Context()) })
				}
				synctest.Wait()
				results := comers(t.Context(), lock, 2)
				if kind == EventContended {
					w.release(lease)
				} else {
					catch(func() { _ = lease.Release(t.Context()) })
				}
				if got := <-caught; got != "observer" {
					t.Errorf("recovered %v", got)
				}
				w.inOrder(results, 0, 1)
			})
		}
	}
}
