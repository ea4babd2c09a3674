package leases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// pauses are those before all starts of a name but the first ones, the shortest
// first.
func (j *journal) pauses(name string, but int) []time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.starts[name]) < but+10 {
		j.t.Fatalf("only %d starts", len(j.starts[name]))
	}
	var pauses []time.Duration
	for _, s := range j.starts[name][but:] {
		pauses = append(pauses, s.pause)
	}
	slices.Sort(pauses)
	return pauses
}

// told asserts the longest of the pauses and their median, and logs them for
// docs/workers.md.
func told(t *testing.T, what string, pauses []time.Duration, mostMedian, most time.Duration) {
	t.Helper()
	n := len(pauses)
	median := pauses[n/2]
	t.Logf("%s: median of %d pauses %.1f s, from %.1f to %.1f s", what, n, median.Seconds(), pauses[0].Seconds(), pauses[n-1].Seconds())
	if median > mostMedian || pauses[n-1] > most {
		t.Errorf("%s: pauses %v, want a median of %v and %v at the most", what, pauses, mostMedian, most)
	}
}

// atRandom is from 0 to below d, the same in every run of a test.
func atRandom(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// TestRollingRestart: an instance starts, and up to half a minute later the one
// that leads is told to stop. The worker pauses for about a second.
func TestRollingRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(1, 1))
		j := newJournal(t)
		var old *instance
		for n := range 21 {
			next := w.start(fmt.Sprintf("instance-%d", n), Config{})
			next.Go(next.ctx, "a", j.worker(next, "a", 0))
			time.Sleep(5*time.Second + atRandom(random, 30*time.Second))
			if old != nil {
				old.is("a", Leading)
				next.is("a", Following)
				old.shutDown()
			}
			time.Sleep(10 * time.Minute)
			old = next
		}
		old.shutDown()
		told(t, "rolling restart", j.pauses("a", 1), 1200*time.Millisecond, 1500*time.Millisecond)
	})
}

// TestRollingRestartOfThree replicas, one after the other, as a Deployment does
// with maxSurge 1 and maxUnavailable 0. The worker moves up to three times.
func TestRollingRestartOfThree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(3, 3))
		j := newJournal(t)
		made := 0
		start := func() *instance {
			made++
			i := w.start(fmt.Sprintf("instance-%d", made), Config{})
			i.Go(i.ctx, "a", j.worker(i, "a", 0))
			return i
		}
		replicas := []*instance{start(), start(), start()}
		for range 10 {
			time.Sleep(10 * time.Minute)
			for n, old := range replicas {
				next := start()
				time.Sleep(5*time.Second + atRandom(random, 30*time.Second)) // until it is ready
				old.shutDown()
				replicas[n] = next
			}
			time.Sleep(time.Minute)
		}
		for _, i := range replicas {
			i.shutDown()
		}
		told(t, "rolling restart of three", j.pauses("a", 1), 1200*time.Millisecond, 1500*time.Millisecond)
	})
}

// TestStoppedLeader: nobody has started lately when the leader stops.
func TestStoppedLeader(t *testing.T) {
	for _, tt := range []struct {
		name             string
		opts             []Option
		mostMedian, most time.Duration
	}{
		{"default", nil, 20 * time.Second, 22500 * time.Millisecond},
		{"watched each second", []Option{WithWatchInterval(time.Second)}, 1200 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				random := rand.New(rand.NewPCG(4, 4))
				j := newJournal(t)
				var old *instance
				for n := range 21 {
					next := w.start(fmt.Sprintf("instance-%d", n), Config{}, tt.opts...)
					next.Go(next.ctx, "a", j.worker(next, "a", 0))
					time.Sleep(3*time.Minute + atRandom(random, time.Minute))
					if old != nil {
						old.shutDown()
					}
					time.Sleep(time.Minute)
					old = next
				}
				old.shutDown()
				told(t, "stopped leader", j.pauses("a", 1), tt.mostMedian, tt.most)
			})
		})
	}
}

// TestSecondMove: followers that have seen the leader change look quickly, so
// that the next move is quick, though none of them has just started.
func TestSecondMove(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := newJournal(t)
		for n := range 12 {
			i := w.start(fmt.Sprintf("instance-%d", n), Config{})
			i.Go(i.ctx, "a", j.worker(i, "a", 0))
		}
		time.Sleep(5 * time.Minute)
		for range 11 {
			j.last("a").who.shutDown()
			time.Sleep(30 * time.Second) // within which all have seen the first move
		}
		j.last("a").who.shutDown()
		told(t, "second move", j.pauses("a", 2), 1200*time.Millisecond, 1500*time.Millisecond)
	})
}

// TestKilledLeader: the worker pauses for what is left of the ttl.
func TestKilledLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(2, 2))
		j := newJournal(t)
		var old *instance
		for n := range 21 {
			next := w.start(fmt.Sprintf("instance-%d", n), Config{})
			next.Go(next.ctx, "a", j.worker(next, "a", 0))
			time.Sleep(5*time.Minute + atRandom(random, time.Minute))
			if old != nil {
				old.is("a", Leading)
				j.kill(old)
				time.Sleep(2 * time.Minute)
				next.is("a", Leading)
				old.shutDown()
			}
			old = next
		}
		old.shutDown()
		pauses := j.pauses("a", 1)
		told(t, "killed leader", pauses, 62*time.Second, 63*time.Second)
		if pauses[0] < 40*time.Second {
			t.Errorf("taken over after %v, the ttl was not over", pauses[0])
		}
	})
}

// TestRequestsPerHour: what a leader and a follower cost.
func TestRequestsPerHour(t *testing.T) {
	for _, tt := range []struct {
		name  string
		opts  []Option
		reads [][2]int // of a follower, from and to, in its first hour and in the next
	}{
		{"default", nil, [][2]int{{250, 300}, {160, 180}}},
		{"each second", []Option{WithWatchInterval(time.Second)}, [][2]int{{3000, 3600}}},
		{"each interval", []Option{WithWatchInterval(time.Hour)}, [][2]int{{160, 180}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.start("a", Config{}, tt.opts...), w.start("b", Config{}, tt.opts...)
				a.Go(a.ctx, "a", untilCancelled)
				time.Sleep(time.Second)
				b.Go(b.ctx, "a", untilCancelled)
				for n, reads := range tt.reads {
					w.server.ResetRequests()
					time.Sleep(time.Hour)
					updates, looks := w.count("a", gcstest.Update), w.count("b", gcstest.Get)
					t.Logf("hour %d: the leader sent %d updates, the follower %d reads", n+1, updates, looks)
					if updates < 175 || updates > 201 {
						t.Errorf("the leader sent %d updates in an hour, want about one in 20 s", updates)
					}
					if looks < reads[0] || looks > reads[1] {
						t.Errorf("the follower sent %d reads in hour %d, want from %d to %d", looks, n+1, reads[0], reads[1])
					}
					if all := len(w.server.Requests()); all != updates+looks {
						t.Errorf("%d requests, of which %d are no update of the leader and no read of the follower", all, all-updates-looks)
					}
				}
				a.shutDown()
				b.shutDown()
			})
		})
	}
}
