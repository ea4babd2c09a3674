package gcslock

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestCourtesy: the pause of a Lock that wants the lock again.
func TestCourtesy(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		held, round, since, longest, want time.Duration
	}{
		"held for a moment":             {held: 20 * ms, longest: time.Second, want: 10 * ms},
		"held for longer":               {held: 200 * ms, longest: time.Second, want: 50 * ms},
		"held for seconds":              {held: 4 * time.Second, longest: time.Second, want: 500 * ms},
		"held for hours":                {held: 4 * time.Hour, longest: time.Minute, want: time.Second},
		"released a while ago":          {held: 4 * time.Second, since: 200 * ms, longest: time.Second, want: 300 * ms},
		"others were there":             {held: 20 * ms, round: 800 * ms, longest: time.Second, want: 500 * ms},
		"they were, for minutes":        {held: 20 * ms, round: time.Hour, longest: time.Minute, want: time.Minute},
		"others, and a short WithWait":  {held: time.Hour, round: time.Hour, longest: 30 * ms, want: 30 * ms},
		"never longer than the longest": {held: time.Hour, longest: 30 * ms, want: 30 * ms},
	} {
		p := past{round: tt.round}
		if d, met := p.courtesy(reading{mono: time.Hour}, tt.longest); d != 0 || met {
			t.Errorf("%s: before any release %v, %v", name, d, met)
		}
		p.release(reading{mono: time.Hour}, tt.held)
		d, met := p.courtesy(reading{mono: time.Hour + tt.since}, tt.longest)
		if d != tt.want || met != (tt.round > 0) {
			t.Errorf("%s: %v, others met %v, want %v", name, d, met, tt.want)
		}
	}
}

// TestCourtesyLetsOthersIn: of two Locks in different processes that each want the
// lock again at once, neither has less than a third of its share.
func TestCourtesyLetsOthersIn(t *testing.T) {
	for name, section := range map[string]time.Duration{"short": 50 * time.Millisecond, "long": 4 * time.Second} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				compete(t, seed, section)
			}
		})
	}
}

func compete(t *testing.T, seed uint64, section time.Duration) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*section)
		defer cancel()
		turns := make(chan int)
		for i, name := range []string{"a", "b"} {
			lock := w.machine(name).lock()
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			lock.random = func(n time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(n))) }
			go func() {
				n := 0
				for lock.Do(ctx, func(context.Context, *Lease) error { time.Sleep(section); return nil }) == nil && ctx.Err() == nil {
					n++
				}
				turns <- n
			}()
		}
		first, second := <-turns, <-turns
		if sum := first + second; sum < 45 || min(first, second) < sum/6 {
			t.Errorf("%d turns and %d", first, second)
		}
	})
}

// TestNoCourtesyUncontended: who does no work between acquisition and release, and
// who has released long ago, does not wait.
func TestNoCourtesyUncontended(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.machine("a")
		m.between = func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			return next.RoundTrip(r)
		}
		lock := m.lock()
		began := time.Now()
		for range 10 {
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.release(lease)
		}
		took(t, "ten cycles of two requests", began, 400*time.Millisecond, 400*time.Millisecond)
		for range 3 {
			began = time.Now()
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			took(t, "an acquisition a second after a long hold", began, 20*time.Millisecond, 20*time.Millisecond)
			time.Sleep(time.Hour)
			w.release(lease)
			time.Sleep(time.Second)
		}
		if ops := w.ops("a"); strings.Contains(ops, "get") {
			t.Errorf("requests are %q, want no look where nobody was met", ops)
		}
	})
}

// TestRefusedCreate: another follows after a third of a second; the fifth time, a
// look.
func TestRefusedCreate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 5, gcstest.FailStatus(429))
		m := w.machine("a")
		var at []time.Duration
		began := time.Now()
		m.between = func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			at = append(at, time.Since(began))
			return next.RoundTrip(r)
		}
		w.release(m.acquire())
		if got := w.ops("a"); got != "create create create create create get create delete" {
			t.Errorf("requests are %q", got)
		}
		for i := 1; i < 5; i++ {
			if d := at[i] - at[i-1]; d != time.Second/3 {
				t.Errorf("create %d came %v after the last, want a third of a second", i+1, d)
			}
		}
	})
}

// TestChangesKeepASecondApart once one was refused, and no longer than for half a
// minute after that.
func TestChangesKeepASecondApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lock := w.machine("a").lock()
		cycle := func() {
			lease, err := lock.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.release(lease)
		}
		began := time.Now()
		cycle()
		took(t, "a cycle where nothing was refused", began, 0, 0)
		w.server.LimitRate(time.Second)
		began = time.Now()
		for range 5 {
			cycle()
		}
		// The first create and the last delete are nine intervals apart, and the
		// first create came just after a delete.
		took(t, "five cycles", began, 10*time.Second, 10*time.Second+time.Second/3)
		if got := len(strings.Fields(w.ops("a"))); got > 2+10+4 {
			t.Errorf("%d requests: %q, want a few refusals at the beginning alone", got, w.ops("a"))
		}
		w.server.LimitRate(0)
		time.Sleep(31 * time.Second)
		began = time.Now()
		cycle()
		took(t, "a cycle long after", began, 0, 0)
	})
}

// TestLooksWhereChangesAreRefused are two to three seconds apart.
func TestLooksWhereChangesAreRefused(t *testing.T) {
	for name, random := range map[string]source{"lowest": lowest, "highest": highest} {
		inWorld(t, func(t *testing.T, w *world) {
			w.rival()
			m := w.machine("b")
			lock := m.lock()
			lock.random = random
			lock.past.change(refused, m.clock.now())
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			defer cancel()
			_, err := lock.Acquire(ctx)
			isHeld(t, err, "rival")
			want := map[string]int{"lowest": 13, "highest": 9}[name]
			if got := w.count(gcstest.Get); got != want {
				t.Errorf("%s: %d looks in 25 s, want %d", name, got, want)
			}
		})
	}
}
