package gcslock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func TestObserverIsNil(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := New(w.machine("a").bucket(testBucket), testObject, WithObserver(&seen{}), WithObserver(nil))
		says(t, err, "observer is nil")
	})
}

// TestObservers: each is told, in the order of the options.
func TestObservers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []string
		note := func(name string) Option {
			return WithObserver(ObserverFunc(func(_ context.Context, e Event) { told = append(told, name+" "+string(e.Kind)) }))
		}
		w.release(w.machine("a").acquire(note("first"), note("second"), WithManualRefresh()))
		want := []string{"first acquired", "second acquired", "first released", "second released"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// TestObserverContext: it has the values of the call's context, and has not
// ended even where that has, or the lease.
func TestObserverContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		want := map[EventKind]string{
			EventAcquired: "acquire", EventRefreshed: "refresh", EventLost: "acquire",
			EventContended: "wait", EventAcquireFailed: "wait", EventReleased: "release",
		}
		told := map[EventKind]bool{}
		o := WithObserver(ObserverFunc(func(ctx context.Context, e Event) {
			told[e.Kind] = true
			if got := ctx.Value(ctxKey); got != want[e.Kind] || ctx.Err() != nil {
				t.Errorf("%s is told with the context of %v, %v", e.Kind, got, ctx.Err())
			}
		}))
		with := func(value string) context.Context { return context.WithValue(t.Context(), ctxKey, value) }
		acquire := func(opts ...Option) *Lease {
			lease, err := w.machine("a").lock(append(opts, o, WithManualRefresh())...).Acquire(with("acquire"))
			if err != nil {
				t.Fatal(err)
			}
			return lease
		}
		lease := acquire()
		if err := lease.Refresh(with("refresh")); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(with("wait"), time.Second)
		defer cancel()
		_, err := w.machine("b").lock(o).Acquire(ctx)
		isContext(t, err, context.DeadlineExceeded)
		ctx, cancel = context.WithCancel(with("release"))
		cancel()
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
		lost := acquire(WithMaxHold(time.Second))
		<-lost.Context().Done()
		synctest.Wait()
		if len(told) != len(want) {
			t.Errorf("told of %v", told)
		}
	})
}

// TestObserverAsks: no mutex is held while it is told, and the context of what
// is lost has been cancelled.
func TestObserverAsks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mine atomic.Pointer[Lease]
		var kinds []EventKind
		o := ObserverFunc(func(_ context.Context, e Event) {
			kinds = append(kinds, e.Kind)
			lease := mine.Load()
			if lease == nil {
				return // Acquire has not returned
			}
			over := e.Kind == EventLost || e.Kind == EventReleased
			if (lease.Err() != nil) != over || (lease.Context().Err() != nil) != over {
				t.Errorf("%s is told of a lease with Err %v, context %v", e.Kind, lease.Err(), lease.Context().Err())
			}
			if lease.Expires().IsZero() || lease.Token() != e.Token {
				t.Errorf("%s is told of token %d, not %d", e.Kind, e.Token, lease.Token())
			}
		})
		lease := w.machine("a").steadily(WithObserver(o))
		mine.Store(lease)
		time.Sleep(30 * time.Second)
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		<-lease.Context().Done()
		synctest.Wait()
		want := []EventKind{EventAcquired, EventRefreshed, EventRefreshFailed, EventLost}
		if !slices.Equal(kinds, want) {
			t.Errorf("told %q, want %q", kinds, want)
		}
	})
}

// TestObserverLooksLate: an observer that finds the time to be up, itself, in the
// middle of being told of a refresh, is told of the loss next.
func TestObserverLooksLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		s := &seen{}
		var lease *Lease
		o := ObserverFunc(func(ctx context.Context, e Event) {
			if e.Kind == EventRefreshed {
				a.clock.suspend(time.Hour)
				isLoss(t, "Err", lease.Err())
			}
			s.Observe(ctx, e)
		})
		lease = a.acquire(WithObserver(o), WithManualRefresh())
		if err := lease.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		if got, want := s.lines(), []string{"acquired 0s 1", "refreshed 0s 1", "lost 0s 0 not_refreshed !"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestLostBeforeTheRefreshIsTold: a refresh that succeeded is not told any more
// when the lease has been lost in between, and that has been told.
func TestLostBeforeTheRefreshIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, s := w.machine("a"), &seen{}
		var lease *Lease
		logger := recorder{func(format string, args ...any) {
			if strings.Contains(fmt.Sprintf(format, args...), "lock refreshed") {
				a.clock.suspend(time.Hour)
				isLoss(t, "Err", lease.Err())
			}
		}}
		lease = a.acquire(WithObserver(s), WithManualRefresh(), WithLogger(slog.New(plainHandler{logger})))
		if err := lease.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		if got, want := s.lines(), []string{"acquired 0s 1", "lost 0s 0 not_refreshed !"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestObserverBlocks: the refresher waits for it, and the lease ends on time all
// the same, with its context cancelled. The loss is told in its turn.
func TestObserverBlocks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s, letGo := &seen{}, make(chan struct{})
		o := ObserverFunc(func(ctx context.Context, e Event) {
			s.Observe(ctx, e)
			if e.Kind == EventRefreshed {
				<-letGo
			}
		})
		lease := w.machine("a").steadily(WithObserver(o))
		began := time.Now()
		<-lease.Context().Done()
		took(t, "the loss", began, 74*time.Second, 74*time.Second) // refreshed once, at 20 s
		isLoss(t, "the cause", context.Cause(lease.Context()))
		w.release(w.machine("b").acquire())
		synctest.Wait()
		if got, want := s.lines(), []string{"acquired 0s 1", "refreshed 0s 1"}; !slices.Equal(got, want) {
			t.Errorf("told %q while it blocks, want %q", got, want)
		}
		close(letGo)
		isLoss(t, "Release", lease.Release(t.Context()))
		if got, want := s.lines(), []string{"acquired 0s 1", "refreshed 0s 1", "lost 1m14s 0 not_refreshed !"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestObserverBlocksAcquire: a lease whose time went by in its observer is lost
// when Acquire returns it.
func TestObserverBlocksAcquire(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &seen{}
		o := ObserverFunc(func(ctx context.Context, e Event) {
			s.Observe(ctx, e)
			if e.Kind == EventAcquired {
				w.release(w.machine("b").acquire()) // when the ttl is over
			}
		})
		w.lost(w.machine("a").acquire(WithObserver(o)))
		synctest.Wait()
		if got := s.lines(); len(got) != 2 || !strings.HasPrefix(got[1], "lost 1m") {
			t.Errorf("told %q, want the loss next", got)
		}
	})
}

// TestObserverPanics: the panic is that of the call, and what comes after it is
// told.
func TestObserverPanics(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &seen{}
		o := ObserverFunc(func(ctx context.Context, e Event) {
			s.Observe(ctx, e)
			if e.Kind == EventRefreshed {
				panic(errWork)
			}
		})
		lease := w.machine("a").acquire(WithObserver(o), WithManualRefresh())
		func() {
			defer func() {
				if recover() != errWork {
					t.Error("the panic does not go on")
				}
			}()
			_ = lease.Refresh(t.Context())
		}()
		w.release(lease)
		if got, want := s.lines(), []string{"acquired 0s 1", "refreshed 0s 1", "released 0s 1"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestOneEnd: whoever comes first when the time is up, and however many at once,
// a lease has one beginning and one end, and nothing follows.
func TestOneEnd(t *testing.T) {
	ends := map[EventKind]int{}
	inWorld(t, func(t *testing.T, w *world) {
		for round := range 100 {
			s := &seen{}
			lease := w.machine("a").steadily(WithObserver(s))
			time.Sleep(10 * time.Second)
			w.inject(gcstest.Update, 1, gcstest.FailStatus(503))
			late := round%2 == 0
			if late {
				outage := w.inject(gcstest.Update, 0, gcstest.DropRequest())
				time.Sleep(44 * time.Second) // the timer is one of the many
				outage.Remove()
			}
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { _ = lease.Err() })
				calls.Go(func() { _ = lease.Refresh(t.Context()) })
				calls.Go(func() { _ = lease.Verify(t.Context()) })
				calls.Go(func() { _ = lease.Release(t.Context()) })
			}
			calls.Wait()
			synctest.Wait()
			first, last := s.events[0].Kind, s.events[len(s.events)-1].Kind
			ended := 0
			for _, e := range s.events {
				if e.Kind == EventLost || e.Kind == EventReleased {
					ended++
				}
				if e.Token != lease.Token() {
					t.Errorf("%s is told of token %d", e.Kind, e.Token)
				}
			}
			lost := errors.Is(lease.Release(t.Context()), ErrLockAbandoned)
			if first != EventAcquired || ended != 1 || lost != (last == EventLost) || !lost && last != EventReleased {
				t.Errorf("told %q of a lease that was lost: %v", s.lines(), lost)
			}
			ends[last]++
		}
	})
	if ends[EventLost] == 0 || ends[EventReleased] == 0 {
		t.Errorf("ended with %v, want both", ends)
	}
}

// TestNobodyObserves: nothing is kept and nothing allocated for an observer that
// is not there.
func TestNobodyObserves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		if lease.telling != nil || !lease.lock.beginning().IsZero() {
			t.Error("something is kept, or a clock is read, for nobody")
		}
		ctx, err := t.Context(), errors.New("failed")
		n := testing.AllocsPerRun(100, func() {
			lease.tellRefresh(ctx, EventRefreshFailed, lease.lock.beginning(), err)
			lease.tellEnd(ctx, err, 1)
		})
		if n != 0 {
			t.Errorf("%v allocations to tell nobody", n)
		}
		w.release(lease)
	})
}
