package gcslock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
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
		"held for no time to speak of":  {held: 2*ms - 1, longest: time.Second, want: 0},
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
		turns := turnsOf(ctx, w, 2, seed, section)
		first, second := turns[0], turns[1]
		if sum := first + second; sum < 45 || min(first, second) < sum/6 {
			t.Errorf("%d turns and %d", first, second)
		}
	})
}

// turnsOf has as many machines want the lock again and again until ctx ends, and counts
// the turns of each.
func turnsOf(ctx context.Context, w *world, machines int, seed uint64, section time.Duration) []int {
	turns := make([]int, machines)
	var running sync.WaitGroup
	for i := range turns {
		lock := w.machine(fmt.Sprint("machine ", i)).lock()
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		lock.random = func(n time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(n))) }
		running.Go(func() {
			for lock.Do(ctx, func(context.Context, *Lease) error { time.Sleep(section); return nil }) == nil && ctx.Err() == nil {
				turns[i]++
			}
		})
	}
	running.Wait()
	return turns
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

// TestLooksWhereChangesAreRefused: with one holder met, two to four seconds apart;
// with more, up to six.
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
			want := map[string]int{"lowest": 13, "highest": 7}[name]
			if got := w.count(gcstest.Get); got != want {
				t.Errorf("%s: %d looks in 25 s, want %d", name, got, want)
			}
			a := &acquisition{Lock: lock, locked: true, holder: Info{Generation: 1}}
			for met := range 6 {
				most := min(3+time.Duration(met), 6) * time.Second
				want := map[string]time.Duration{"lowest": 2 * time.Second, "highest": most - 1}[name]
				if got := a.nextPause(); got != want {
					t.Errorf("%s: with %d others met, a pause of %v, want %v", name, met, got, want)
				}
				a.others.meet(&Info{Generation: int64(met + 1), PID: met + 1})
			}
		})
	}
}

// TestCourtesyWhereChangesAreRefused: the first of eight releases, unless others are
// met, is an offer to them, and so nobody has every turn.
func TestCourtesyWhereChangesAreRefused(t *testing.T) {
	var p past
	var offers []int
	for turn := range 20 {
		now := reading{mono: time.Duration(turn) * time.Minute}
		p.change(refused, now)
		p.release(now, 0)
		now.mono += time.Second
		if d, met := p.courtesy(now, time.Millisecond); met {
			offers = append(offers, turn)
			if d != time.Second/2 {
				t.Errorf("turn %d: a second after the release a pause of %v, want half a second", turn, d)
			}
		}
		now.mono += limitMemory
		if d, met := p.courtesy(now, time.Minute); d > 0 || met {
			t.Errorf("turn %d: a pause of %v long after the refusal", turn, d)
		}
	}
	if !slices.Equal(offers, []int{0, 8, 16}) {
		t.Errorf("offers in the turns %v, want each eighth", offers)
	}
	p.round = time.Second
	p.release(reading{}, 0)
	p.round = 0
	if p.release(reading{}, 0); p.alone != 1 {
		t.Errorf("%d turns alone since others were met, want 1", p.alone)
	}

	inWorld(t, func(t *testing.T, w *world) {
		w.server.LimitRate(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		turns := turnsOf(ctx, w, 4, 1, 50*time.Millisecond)
		sum := 0
		for _, n := range turns {
			sum += n
		}
		if most := slices.Max(turns); sum-most < sum/5 {
			t.Errorf("the turns of each were %d, want a fifth or more for the others", turns)
		}
	})
}
