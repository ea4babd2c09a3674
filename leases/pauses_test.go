package leases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// TestRollingRestart: an instance starts, and up to half a minute later the one
// that leads is told to stop. The worker pauses for about a second.
func TestRollingRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(1, 1))
		j := newJournal(t)
		old := w.start("instance-0", Config{})
		old.Go(old.ctx, "a", j.worker(old, "a", 0))
		time.Sleep(time.Hour)
		var pauses []time.Duration
		for n := range 20 {
			next := w.start(fmt.Sprintf("instance-%d", n+1), Config{})
			next.Go(next.ctx, "a", j.worker(next, "a", 0))
			time.Sleep(5*time.Second + time.Duration(random.Int64N(int64(30*time.Second))))
			old.is("a", Leading)
			next.is("a", Following)
			told := time.Now()
			old.shutDown()
			time.Sleep(time.Minute)
			if s := j.last("a"); s.who != next {
				t.Fatalf("%s started last, want %s", s.who.name, next.name)
			} else {
				pauses = append(pauses, s.at.Sub(told))
			}
			old = next
			time.Sleep(time.Hour)
		}
		old.shutDown()
		m := median(pauses)
		t.Logf("pauses in a rolling restart: median %v, from %v to %v", m, pauses[0], pauses[19])
		if m > time.Second || pauses[19] > 1500*time.Millisecond {
			t.Errorf("pauses %v: a rolling restart should take a second", pauses)
		}
	})
}

// TestKilledLeader: the worker pauses for what is left of the ttl.
func TestKilledLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(2, 2))
		var pauses []time.Duration
		for n := range 20 {
			name := fmt.Sprintf("worker-%d", n)
			j := newJournal(t)
			a, b := w.start("a"+name, Config{}), w.start("b"+name, Config{})
			a.Go(a.ctx, name, j.worker(a, name, 0))
			time.Sleep(time.Second)
			b.Go(b.ctx, name, j.worker(b, name, 0))
			time.Sleep(5*time.Minute + time.Duration(random.Int64N(int64(20*time.Second))))
			a.is(name, Leading)
			j.kill(a)
			killed := time.Now()
			time.Sleep(2 * time.Minute)
			s := j.last(name)
			if s.who != b {
				t.Fatal("it did not start elsewhere")
			}
			pauses = append(pauses, s.at.Sub(killed))
			b.shutDown()
			a.shutDown()
		}
		m := median(pauses)
		t.Logf("pauses after a kill: median %v, from %v to %v", m, pauses[0], pauses[19])
		if pauses[0] < 40*time.Second || pauses[19] > 63*time.Second {
			t.Errorf("pauses %v, want what is left of a ttl of a minute, and two seconds", pauses)
		}
	})
}

// TestRequestsPerHour: what a leader and a follower cost.
func TestRequestsPerHour(t *testing.T) {
	for _, tt := range []struct {
		name             string
		opts             []Option
		first, atMost    int // reads of a follower in its first hour
		later, laterMost int // and in any other
	}{
		{"default", nil, 250, 300, 160, 180},
		{"each second", []Option{WithWatchInterval(time.Second)}, 3000, 3600, 3000, 3600},
		{"each interval", []Option{WithWatchInterval(time.Hour)}, 160, 180, 160, 180},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.start("a", Config{}, tt.opts...), w.start("b", Config{}, tt.opts...)
				a.Go(a.ctx, "a", untilCancelled)
				time.Sleep(time.Second)
				b.Go(b.ctx, "a", untilCancelled)
				for n, reads := range [][2]int{{tt.first, tt.atMost}, {tt.later, tt.laterMost}} {
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
