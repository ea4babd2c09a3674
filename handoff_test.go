package gcslock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// queued has n goroutines wait behind a lease of the lock.
func queued(w *world, lock *Lock, n int) (*Lease, <-chan result) {
	w.Helper()
	lease, err := lock.Acquire(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return lease, comers(context.Background(), lock, n)
}

// sequences are those of the leases.
func sequences(leases []*Lease) (all []int) {
	for _, l := range leases {
		all = append(all, l.Sequence())
	}
	return all
}

// TestHandoff: one create and one delete for a run of leases, in order, each over
// before the next begins.
func TestHandoff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock(WithLocalHandoff(10, time.Hour))
		first, results := queued(w, lock, 4)
		w.release(first)
		leases := append([]*Lease{first}, w.inOrder(results, 0, 3)...)
		if got := w.ops("a"); got != "create delete" {
			t.Errorf("requests are %q, want those of one lease", got)
		}
		if got := sequences(leases); !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
			t.Errorf("the sequences are %v", got)
		}
		for _, l := range leases {
			if l.Token() != first.Token() {
				t.Errorf("tokens %d and %d in one run", first.Token(), l.Token())
			}
		}
		next, err := lock.Acquire(t.Context())
		if err != nil || next.Token() == first.Token() || next.Sequence() != 1 {
			t.Errorf("after the run: %v, token %d, number %d", err, next.Token(), next.Sequence())
		}
		w.release(next)
	})
}

// TestHandoffIsOff unless it is asked for.
func TestHandoffIsOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, results := queued(w, w.machine("a").lock(), 1)
		w.release(first)
		if leases := w.inOrder(results, 0, 0); leases[0].Token() == first.Token() || leases[0].Sequence() != 1 {
			t.Errorf("tokens %d and %d, number %d", first.Token(), leases[0].Token(), leases[0].Sequence())
		}
	})
}

// TestHandoffLimits: by number and by time, and then the object is deleted.
func TestHandoffLimits(t *testing.T) {
	for _, tt := range []struct {
		most int
		d    time.Duration
		want []int
	}{
		{2, time.Hour, []int{1, 2, 3, 1, 2, 3, 1}},
		{100, 70 * time.Millisecond, []int{1, 2, 3, 1, 2, 3, 1}}, // of 30 ms each
	} {
		inWorld(t, func(t *testing.T, w *world) {
			lock := w.machine("a").lock(WithLocalHandoff(tt.most, tt.d))
			first, results := queued(w, lock, 6)
			time.Sleep(24 * time.Millisecond) // 6 ms have gone by
			w.release(first)
			leases := append([]*Lease{first}, w.inOrder(results, 0, 5)...)
			if got := sequences(leases); !slices.Equal(got, tt.want) {
				t.Errorf("%d times within %v: %v, want %v", tt.most, tt.d, got, tt.want)
			}
			if creates, deletes := w.count(gcstest.Create), w.count(gcstest.Delete); creates != 3 || deletes != 3 {
				t.Errorf("%d creates and %d deletes, want 3 runs", creates, deletes)
			}
		})
	}
}

func TestHandoffRefuses(t *testing.T) {
	for _, o := range []Option{WithLocalHandoff(0, time.Second), WithLocalHandoff(-1, time.Second), WithLocalHandoff(1, 0), WithLocalHandoff(1, -time.Second)} {
		w := &world{T: t, server: gcstest.New(testBucket)}
		_, err := New(w.machine("a").bucket(testBucket), testObject, o)
		says(t, err, "hand-offs within", "not both positive")
	}
}

// TestHandoffFairness: a waiter in another process gets in between two runs.
func TestHandoffFairness(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lock := w.machine("a").lock(WithLocalHandoff(1000, 2*time.Second))
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for ctx.Err() == nil {
					_ = lock.Do(ctx, func(context.Context, *Lease) error { time.Sleep(50 * time.Millisecond); return nil })
				}
			})
		}
		other := w.machine("b").lock()
		began := time.Now()
		for range 20 {
			lease, err := other.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			w.release(lease)
		}
		// At best one run each, and the pause after it.
		took(t, "twenty turns of another process", began, 0, 20*3*2*time.Second)
		cancel()
		workers.Wait()
	})
}

// TestFormerLease: one that was passed on is over, as one that was released.
func TestFormerLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, results := queued(w, w.machine("a").lock(WithLocalHandoff(1, time.Hour)), 1)
		w.release(first)
		next := (<-results).lease
		before := len(w.server.Requests())
		for name, err := range map[string]error{
			"Err": first.Err(), "the context's cause": context.Cause(first.Context()),
			"Verify": first.Verify(t.Context()), "Refresh": first.Refresh(t.Context()),
		} {
			if !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s is %v, want ErrNotHeld", name, err)
			}
		}
		if err := first.Release(t.Context()); err != nil {
			t.Errorf("released again: %v", err)
		}
		if got := len(w.server.Requests()) - before; got != 0 {
			t.Errorf("it sent %d requests", got)
		}
		if err := next.Verify(t.Context()); err != nil {
			t.Errorf("the next one: %v", err)
		}
		w.release(next)
	})
}

// TestHandoffIsRefreshed: the next lease's refresher goes on where the last one's
// stopped, and its loss is its own.
func TestHandoffIsRefreshed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, results := queued(w, w.machine("a").lock(WithLocalHandoff(1, time.Hour)), 1)
		time.Sleep(10 * time.Minute)
		w.release(first)
		next := (<-results).lease
		time.Sleep(10 * time.Minute)
		if err := next.Verify(t.Context()); err != nil {
			t.Errorf("ten minutes later: %v", err)
		}
		w.server.Delete(testBucket, testObject)
		time.Sleep(time.Minute)
		w.lost(next)
		isLoss(t, "Release", next.Release(t.Context()))
		if !errors.Is(first.Err(), ErrNotHeld) {
			t.Errorf("the former one: %v", first.Err())
		}
	})
}

// TestHandoffNearlyUsedUp: what has less than a refresh interval left is not passed
// on.
func TestHandoffNearlyUsedUp(t *testing.T) {
	for after, want := range map[time.Duration]int{33 * time.Second: 2, 35 * time.Second: 1} {
		inWorld(t, func(t *testing.T, w *world) {
			// Valid for 54 s, and refreshed every 20.
			first, results := queued(w, w.machine("a").lock(WithLocalHandoff(5, time.Hour), WithManualRefresh()), 1)
			expires := first.Expires()
			time.Sleep(after)
			w.release(first)
			next := (<-results).lease
			if next.Sequence() != want {
				t.Errorf("after %v it is number %d, want %d", after, next.Sequence(), want)
			}
			if want == 2 && !next.Expires().Equal(expires) {
				t.Errorf("it was passed on with a validity until %v, had one until %v", next.Expires(), expires)
			}
			w.release(next)
		})
	}
}

// TestHandoffOfPendingRefresh: an attempt of the former lease that lands later is
// known to be ours, and counts from before it was sent.
func TestHandoffOfPendingRefresh(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, results := queued(w, w.machine("a").lock(WithLocalHandoff(1, time.Hour), WithManualRefresh()), 1)
		time.Sleep(10 * time.Second)
		withheld := w.inject(gcstest.Update, 1, gcstest.Withhold())
		asked := make(chan error)
		sent := time.Now()
		go func() { asked <- first.Refresh(t.Context()) }()
		synctest.Wait()
		w.release(first)
		<-asked
		next := (<-results).lease
		withheld.Deliver()
		time.Sleep(time.Second)
		if err := next.Refresh(t.Context()); err != nil {
			t.Fatalf("refresh: %v", err)
		}
		if left := next.Expires().Sub(sent); left != 54*time.Second {
			t.Errorf("it is valid for %v from when the attempt was sent that landed, want 54s", left)
		}
		w.release(next)
		if _, ok := w.object(); ok {
			t.Error("the object is still there")
		}
	})
}

// TestHandoffAsContextEnds: what was passed on is not lost, whether the waiter takes
// it or not.
func TestHandoffAsContextEnds(t *testing.T) {
	for range 50 {
		inWorld(t, func(t *testing.T, w *world) {
			lock := w.machine("a").lock(WithLocalHandoff(5, time.Hour))
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			hasty := comers(ctx, lock, 1)
			patient := comers(t.Context(), lock, 1)
			time.Sleep(time.Until(func() time.Time { d, _ := ctx.Deadline(); return d }()))
			w.release(lease)
			switch r := <-hasty; {
			case r.err == nil:
				w.release(r.lease)
			default:
				isHeld(t, r.err, "a")
			}
			w.inOrder(patient, 0, 0)
			if _, ok := w.object(); ok {
				t.Error("the object is still there")
			}
		})
	}
}

// A handedContext ends just as something is passed on to who waits with it.
type handedContext struct {
	context.Context
	lock  *Lock
	lease *Lease
	end   context.CancelFunc
}

// Done is asked for when the offer has been made.
func (c handedContext) Done() <-chan struct{} {
	c.lock.queue.mu.Lock()
	offered := c.lock.queue.heir != nil
	c.lock.queue.mu.Unlock()
	if offered {
		_ = c.lease.Release(context.Background())
		c.end()
	}
	return c.Context.Done()
}

// TestHandedAsContextEnds: the waiter has the lock then, whichever it notices first.
func TestHandedAsContextEnds(t *testing.T) {
	for range 30 {
		inWorld(t, func(t *testing.T, w *world) {
			lock := w.machine("a").lock(WithLocalHandoff(5, time.Hour))
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			next, err := lock.Acquire(handedContext{ctx, lock, lease, cancel})
			if err != nil || next.Sequence() != 2 {
				t.Fatalf("it got %v", err)
			}
			w.release(next)
		})
	}
}

// TestHandoffToNobody: the offer of one who has gone counts no more.
func TestHandoffToNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock(WithLocalHandoff(5, time.Hour))
		lease, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = lock.Acquire(ctx)
		isHeld(t, err, "a")
		w.release(lease)
		if _, ok := w.object(); ok {
			t.Error("the object is still there")
		}
	})
}

// TestHandoffEvents: a beginning and an end of each lease, and no request but those
// of the first and the last.
func TestHandoffEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var events []string
		observer := ObserverFunc(func(_ context.Context, e Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprint(e.Kind, e.Sequence, " ", e.Duration.Round(time.Millisecond), " ", e.Attempts))
			if (e.Token != 0) != (e.Sequence != 0) || e.Err != nil {
				t.Errorf("%+v", e)
			}
		})
		first, results := queued(w, w.machine("a").lock(WithLocalHandoff(5, time.Hour), WithObserver(observer)), 2)
		time.Sleep(8 * time.Millisecond)
		w.release(first)
		w.inOrder(results, 0, 1)
		synctest.Wait()
		slices.Sort(events)
		want := "acquired1 0s 1, acquired2 9ms 0, acquired3 38ms 0, contended0 0s 0, contended0 8ms 0, " +
			"released1 10ms 0, released2 30ms 0, released3 30ms 1"
		if got := strings.Join(events, ", "); got != want {
			t.Errorf("told of\n%s, want\n%s", got, want)
		}
	})
}

// TestMaxHoldInRun counts for each lease by itself.
func TestMaxHoldInRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, results := queued(w, w.machine("a").lock(WithLocalHandoff(5, time.Hour), WithMaxHold(time.Minute)), 1)
		time.Sleep(50 * time.Second)
		w.release(first)
		next := (<-results).lease
		time.Sleep(59 * time.Second)
		if err := next.Err(); err != nil {
			t.Errorf("after 59 s of its own: %v", err)
		}
		time.Sleep(2 * time.Second)
		w.lost(next)
		isLoss(t, "Release", next.Release(t.Context()))
	})
}

// TestHandoffIsLogged as what it is.
func TestHandoffIsLogged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		log := newLog()
		first, results := queued(w, w.machine("a").lock(WithLocalHandoff(5, time.Hour), WithLogger(log.logger)), 1)
		w.release(first)
		w.inOrder(results, 0, 0)
		if line := log.only(t, "passed on"); !strings.Contains(line, "level=INFO") || !strings.Contains(line, fmt.Sprint("generation=", first.Token())) {
			t.Errorf("logged %s", line)
		}
	})
}
