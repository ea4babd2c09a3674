package gcslock

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// A seen is an observer that keeps what it is told.
type seen struct {
	mu     sync.Mutex // guards events
	events []Event
}

func (s *seen) Observe(_ context.Context, e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// lines are the events as text: kind, duration, requests, and where there are
// any the reason, the holder and that there is an error.
func (s *seen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, e := range s.events {
		line := fmt.Sprintf("%s %v %d", e.Kind, e.Duration, e.Attempts)
		if e.Reason != "" {
			line += " " + string(e.Reason)
		}
		if e.Holder != nil {
			line += " of " + e.Holder.Owner
		}
		if e.Err != nil {
			line += " !"
		}
		lines = append(lines, line)
	}
	return lines
}

// An observation is something that happens to machine a, in virtual time, and
// what an observer is told of it.
type observation struct {
	name string
	do   func(w *world, a *machine, o Option)
	want []string
}

// steady has no chance in its pauses: each is the shortest.
func steady(l *Lock) *Lock {
	l.random = func(time.Duration) time.Duration { return 0 }
	return l
}

// steadily acquires such a lock.
func (m *machine) steadily(opts ...Option) *Lease {
	m.Helper()
	lease, err := steady(m.lock(opts...)).Acquire(context.Background())
	if err != nil {
		m.Fatal(err)
	}
	return lease
}

var observations = []observation{
	{"a life", func(w *world, a *machine, o Option) {
		lease := a.acquire(o, WithManualRefresh())
		time.Sleep(10 * time.Second)
		w.inject(gcstest.Update, 1, gcstest.DelayReply(2*time.Second))
		if err := lease.Refresh(w.Context()); err != nil {
			w.Error(err)
		}
		w.inject(gcstest.Delete, 1, gcstest.DelayReply(3*time.Second))
		w.release(lease)
		_ = lease.Release(w.Context()) // a second one is none
	}, []string{"acquired 0s 1", "refreshed 2s 1", "released 12s 1"}},

	{"automatic refreshes", func(w *world, a *machine, o Option) {
		lease := a.steadily(o)
		time.Sleep(50 * time.Second)
		w.release(lease)
	}, []string{"acquired 0s 1", "refreshed 0s 1", "refreshed 0s 1", "released 50s 1"}},

	{"replies are lost", func(w *world, a *machine, o Option) {
		w.inject(gcstest.Create, 1, gcstest.LoseReply())
		lease := a.steadily(o, WithManualRefresh())
		w.inject(gcstest.Update, 1, gcstest.LoseReply())
		if err := lease.Refresh(w.Context()); err != nil {
			w.Error(err)
		}
		w.inject(gcstest.Delete, 1, gcstest.LoseReply())
		w.release(lease)
		// Of the refresh: an update, one that meets the first, and the read that tells.
	}, []string{"acquired 100ms 2", "refreshed 100ms 3", "released 100ms 2"}},

	{"waits for one holder", func(w *world, a *machine, o Option) {
		first := w.machine("b").acquire()
		time.AfterFunc(9500*time.Millisecond, func() { w.release(first) })
		w.release(a.acquire(o, WithWait(time.Second, time.Second)))
	}, []string{"contended 0s 2 of b", "acquired 10s 13", "released 0s 1"}},

	{"waits for two holders", func(w *world, a *machine, o Option) {
		first := w.machine("b").acquire()
		time.AfterFunc(1500*time.Millisecond, func() {
			w.release(first)
			second := w.machine("c").acquire()
			time.AfterFunc(2*time.Second, func() { w.release(second) })
		})
		w.release(a.acquire(o, WithWait(time.Second, time.Second)))
	}, []string{"contended 0s 2 of b", "contended 2s 4 of c", "acquired 4s 7", "released 0s 1"}},

	{"a try is refused", func(w *world, a *machine, o Option) {
		w.rival()
		_, err := a.lock(o).TryAcquire(w.Context())
		isHeld(w.T, err, "rival")
	}, []string{"contended 0s 2 of rival", "acquire_failed 0s 2 !"}},

	{"a wait ends", func(w *world, a *machine, o Option) {
		w.rival()
		_, err := a.lock(o, WithWait(time.Second, time.Second), WithMaxWait(4500*time.Millisecond)).Acquire(w.Context())
		isHeld(w.T, err, "rival")
	}, []string{"contended 0s 2 of rival", "acquire_failed 4.5s 6 !"}},

	{"storage is out of reach", func(w *world, a *machine, o Option) {
		w.inject("", 0, gcstest.FailStatus(429))
		_, err := steady(a.lock(o)).TryAcquire(w.Context())
		says(w.T, err, "429")
	}, []string{"acquire_failed 999.999999ms 4 !"}},

	{"not permitted", func(w *world, a *machine, o Option) {
		w.inject(gcstest.Create, 1, gcstest.Forbid("storage.objects.create"))
		_, err := a.lock(o).Acquire(w.Context())
		says(w.T, err, "storage.objects.create")
	}, []string{"acquire_failed 0s 1 !"}},

	{"takes over what has expired", func(w *world, a *machine, o Option) {
		b := w.machine("b")
		b.crash(b.acquire())
		time.Sleep(63 * time.Second)
		w.release(a.acquire(o))
	}, []string{"taken_over 0s 3 expired of b", "acquired 0s 4", "released 0s 1"}},

	{"takes over what does not change", func(w *world, a *machine, o Option) {
		b := w.machine("b")
		b.crash(b.acquire())
		a.between = withoutDate
		w.release(a.acquire(o, WithWait(time.Hour, time.Hour)))
	}, []string{"contended 0s 2 of b", "taken_over 1m0s 4 unchanged of b", "acquired 1m0s 5", "released 0s 1"}},

	{"reclaims its own", func(w *world, a *machine, o Option) {
		a.crash(a.acquire(o))
		w.release(a.acquire(o, WithReclaim()))
		// Of the one that crashed nothing is told.
	}, []string{"acquired 0s 1", "taken_over 0s 3 reclaimed of a", "acquired 0s 4", "released 0s 1"}},

	{"a refresh fails, the next does not", func(w *world, a *machine, o Option) {
		lease := a.steadily(o, WithManualRefresh())
		outage := w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		ctx, cancel := context.WithTimeout(w.Context(), 250*time.Millisecond)
		defer cancel()
		says(w.T, lease.Refresh(ctx), "503")
		outage.Remove()
		w.inject(gcstest.Update, 1, gcstest.FailStatus(503))
		if err := lease.Refresh(w.Context()); err != nil {
			w.Error(err)
		}
		w.release(lease)
	}, []string{"acquired 0s 1", "refresh_failed 250ms 3 !", "refreshed 100ms 2", "released 350ms 1"}},

	{"a refresh that the release cuts short", func(w *world, a *machine, o Option) {
		lease := a.steadily(o)
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		time.Sleep(25 * time.Second)
		w.release(lease)
	}, []string{"acquired 0s 1", "released 25s 1"}},

	{"an outage", func(w *world, a *machine, o Option) {
		lease := a.steadily(o, WithRefreshInterval(19950*time.Millisecond))
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		<-lease.Context().Done()
		synctest.Wait()
		isLoss(w.T, "Release", lease.Release(w.Context()))
	}, []string{"acquired 0s 1", "refresh_failed 19.95s 200 !", "lost 54s 0 not_refreshed !"}},

	{"nobody refreshes, and a call finds it", func(w *world, a *machine, o Option) {
		l := a.older(nil, o)
		if err := l.Lock(w.Context(), time.Minute); err != nil {
			w.Fatal(err)
		}
		time.Sleep(time.Minute)
		isLoss(w.T, "Unlock", l.Unlock(w.Context()))
	}, []string{"acquired 0s 1", "lost 1m0s 0 not_refreshed !"}},

	{"held for too long", func(w *world, a *machine, o Option) {
		lease := a.steadily(o, WithMaxHold(10*time.Second))
		<-lease.Context().Done()
		synctest.Wait()
	}, []string{"acquired 0s 1", "lost 10s 0 max_hold !"}},

	{"too many failures", func(w *world, a *machine, o Option) {
		lease := a.steadily(o, WithManualRefresh(), WithRefreshInterval(250*time.Millisecond), WithMaxRefreshFailures(0))
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		isLoss(w.T, "Refresh", lease.Refresh(w.Context()))
	}, []string{"acquired 0s 1", "refresh_failed 250ms 3 !", "lost 250ms 0 refresh_failures !"}},

	{"deleted", func(w *world, a *machine, o Option) {
		lease := a.steadily(o)
		w.server.Delete(testBucket, testObject)
		<-lease.Context().Done()
		synctest.Wait()
	}, []string{"acquired 0s 1", "lost 20s 0 deleted !"}},

	{"replaced, and Verify finds it", func(w *world, a *machine, o Option) {
		lease := a.acquire(o, WithManualRefresh())
		w.rival()
		time.Sleep(time.Second)
		isLoss(w.T, "Verify", lease.Verify(w.Context()))
	}, []string{"acquired 0s 1", "lost 1s 0 replaced !"}},

	{"deleted, and the release finds it", func(w *world, a *machine, o Option) {
		lease := a.acquire(o, WithManualRefresh())
		w.server.Delete(testBucket, testObject)
		time.Sleep(time.Second)
		isLoss(w.T, "Release", lease.Release(w.Context()))
		isLoss(w.T, "Release again", lease.Release(w.Context()))
	}, []string{"acquired 0s 1", "lost 1s 1 deleted !"}},

	{"the release fails", func(w *world, a *machine, o Option) {
		lease := a.acquire(o)
		w.inject(gcstest.Delete, 1, gcstest.Forbid("storage.objects.delete"))
		time.Sleep(time.Second)
		says(w.T, lease.Release(w.Context()), "storage.objects.delete")
	}, []string{"acquired 0s 1", "released 1s 1 !"}},

	{"the caller-driven form", func(w *world, a *machine, o Option) {
		l := a.older(nil, o)
		check := func(err error) {
			if err != nil {
				w.Error(err)
			}
		}
		check(l.Lock(w.Context(), 0))
		time.Sleep(10 * time.Second)
		check(l.RefreshLock(w.Context()))
		w.inject(gcstest.Update, 1, gcstest.FailStatus(503))
		says(w.T, l.RefreshLock(w.Context()), "503")
		check(l.Lock(w.Context(), 0)) // as a restarted process would
		time.Sleep(time.Second)
		check(l.Unlock(w.Context()))
		check(l.Unlock(w.Context()))
	}, []string{"acquired 0s 1", "refreshed 0s 1", "refresh_failed 0s 1 !",
		"taken_over 0s 3 reclaimed of a", "lost 10s 0 replaced !", "acquired 0s 4", "released 1s 1"}},

	{"Do panics", func(w *world, a *machine, o Option) {
		defer func() {
			if recover() != errWork {
				w.Error("the panic does not go on")
			}
		}()
		_ = a.lock(o).Do(w.Context(), func(context.Context, *Lease) error {
			time.Sleep(time.Second)
			panic(errWork)
		})
	}, []string{"acquired 0s 1", "released 1s 1"}},
}

// TestObserver: what is told of everything that can happen, and nothing else.
func TestObserver(t *testing.T) {
	for _, o := range observations {
		t.Run(o.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := &seen{}
				o.do(w, w.machine("a"), WithObserver(s))
				if got := s.lines(); !slices.Equal(got, o.want) {
					t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(o.want, "\n\t"))
				}
				for _, e := range s.events {
					if e.Bucket != testBucket || e.Object != testObject {
						t.Errorf("%s is told of gs://%s/%s", e.Kind, e.Bucket, e.Object)
					}
				}
			})
		})
	}
}

// withoutDate is a network that does not bring the server's time.
func withoutDate(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err == nil {
		response.Header.Del("Date")
	}
	return response, err
}
