package gcslock

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func TestBackoff(t *testing.T) {
	b := backoff{random: chance, shortest: 100 * time.Millisecond, longest: time.Second}
	seen := map[time.Duration]bool{}
	last := time.Duration(0)
	longest := last
	for range 1000 {
		d := b.next()
		if d < b.shortest || d > min(b.longest, max(3*last, b.shortest)) {
			t.Fatalf("pause of %v after one of %v", d, last)
		}
		last, longest, seen[d] = d, max(longest, d), true
	}
	if len(seen) < 100 || longest < b.longest/2 {
		t.Errorf("%d different pauses of up to %v in 1000: no jitter or no growth", len(seen), longest)
	}
	same := backoff{random: chance, shortest: time.Second, longest: time.Second}
	if d := same.next(); d != time.Second {
		t.Errorf("pause of %v where only 1s is allowed", d)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("slept %v, %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := sleep(ctx, time.Hour); err != context.DeadlineExceeded || time.Since(began) != time.Minute {
			t.Errorf("with a context of a minute slept %v, %v", time.Since(began), err)
		}
	})
}

// TestStandby: no create while somebody holds the lock, the pauses that the
// function gives, and the lock all the same when it is released or stale.
func TestStandby(t *testing.T) {
	pauses := func(seen *[]int64, d time.Duration) Option {
		return WithStandby(func(holder Info) time.Duration {
			*seen = append(*seen, holder.Generation)
			return d
		})
	}
	t.Run("released", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			first := w.machine("a").acquire()
			time.AfterFunc(time.Hour+time.Second, func() { w.release(first) })
			var seen []int64
			began := time.Now()
			second := w.machine("b").acquire(pauses(&seen, 20*time.Second))
			took(t, "the wait", began, time.Hour+20*time.Second, time.Hour+20*time.Second)
			if got, want := w.ops("b"), strings.Repeat("get ", 182)+"create"; got != want {
				t.Errorf("requests %q, want one read each 20 s and a create", got)
			}
			if len(seen) != 181 || seen[0] != first.Token() {
				t.Errorf("asked %d times, of %v", len(seen), seen[:1])
			}
			w.release(second)
		})
	})
	t.Run("free", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			var seen []int64
			w.release(w.machine("a").acquire(pauses(&seen, time.Minute)))
			if got := w.ops(""); got != "get create delete" || len(seen) != 0 {
				t.Errorf("requests %q, asked %d times", got, len(seen))
			}
		})
	})
	t.Run("stale", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			// The server's clock counts, although the first look comes late, and
			// although there is no create at the beginning that would tell it.
			a := w.machine("a")
			began := time.Now()
			a.crash(a.acquire())
			time.Sleep(20 * time.Second)
			var seen []int64
			w.release(w.machine("b").acquire(pauses(&seen, time.Hour)))
			took(t, "the takeover", began, time.Minute, time.Minute+3*time.Second)
			if got, want := w.ops("b"), "get get create get get delete create delete"; got != want {
				t.Errorf("requests %q, want %q", got, want)
			}
		})
	})
	t.Run("stale and no Date", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.machine("a"), w.machine("b")
			b.between = func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err == nil {
					response.Header.Del("Date")
				}
				return response, err
			}
			a.crash(a.acquire())
			time.Sleep(20 * time.Second)
			var seen []int64
			began := time.Now()
			w.release(b.acquire(pauses(&seen, 7*time.Second)))
			took(t, "the takeover", began, time.Minute, time.Minute+time.Second)
			// Asked once for the time that nobody tells.
			if n := strings.Count(w.ops("b"), "create"); n != 2 {
				t.Errorf("requests %q, want two creates", w.ops("b"))
			}
		})
	})
	t.Run("no pause given", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.rival()
			var seen []int64
			w.release(w.machine("b").acquire(pauses(&seen, -time.Hour), WithWait(500*time.Millisecond, time.Second)))
			if n := w.count(gcstest.Get); n > 130 {
				t.Errorf("%d reads in a minute, want none sooner than after half a second", n)
			}
		})
	})
	t.Run("failures", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.inject(gcstest.Create, 2, gcstest.FailStatus(429))
			var seen []int64
			began := time.Now()
			w.release(w.machine("b").acquire(pauses(&seen, time.Hour)))
			took(t, "the acquisition", began, 200*time.Millisecond, 2*time.Second)
		})
	})
	t.Run("try", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.rival()
			var seen []int64
			_, err := w.machine("b").lock(pauses(&seen, time.Hour)).TryAcquire(t.Context())
			isHeld(t, err, "rival")
			if got := w.ops(""); got != "create get" {
				t.Errorf("requests %q, want those of any try", got)
			}
		})
	})
}
