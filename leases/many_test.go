package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestManyManagers: 20 managers with 10 names each. No name ever runs twice at
// once; each is running at the beginning, and is again within ttl + 2 intervals
// after each kill; and nobody sends a create while a leader lives.
func TestManyManagers(t *testing.T) {
	const ttl, interval = 60 * time.Second, 20 * time.Second
	inWorld(t, func(t *testing.T, w *world) {
		j := newJournal(t)
		var alive, dead []*instance
		for n := range 20 {
			// Looks of a second are for TestRollingRestart: here they would cost
			// most of the time.
			i := w.start(fmt.Sprintf("instance-%d", n), Config{TTL: ttl, RenewInterval: interval}, WithWatchInterval(interval))
			for _, name := range names(10) {
				i.Go(i.ctx, name, j.worker(i, name, 500*time.Millisecond))
			}
			alive = append(alive, i)
		}
		time.Sleep(10 * time.Second)
		for round := range 4 {
			// Whoever leads most: the start gives one instance several names.
			leads := map[*instance]int{}
			for _, name := range names(10) {
				s := j.last(name)
				if s.who == nil {
					t.Fatalf("%q has never run", name)
				}
				leads[s.who]++
			}
			victim := 0
			for n, i := range alive {
				if leads[i] > leads[alive[victim]] {
					victim = n
				}
			}
			// At any moment between two renewals.
			time.Sleep(time.Minute + time.Duration(round)*interval/4)
			i := alive[victim]
			alive = append(alive[:victim], alive[victim+1:]...)
			dead = append(dead, i)
			ran := j.kill(i)
			if len(ran) == 0 {
				t.Errorf("%s did not run anything when it was killed", i.name)
			}
			killed := time.Now()
			time.Sleep(ttl + 2*interval)
			for _, name := range ran {
				if s := j.last(name); s.who == i || s.at.Before(killed) {
					t.Errorf("%q did not start elsewhere within %v", name, ttl+2*interval)
				}
			}
		}
		w.onlyNeededCreates(ttl)
		for _, i := range append(alive, dead...) {
			i.stop()
			if err := i.Wait(2 * time.Minute); err != nil && !i.frozen.Load() {
				t.Error(err)
			}
		}
		tokens := map[int64]bool{}
		runs := 0
		for _, name := range names(10) {
			for _, s := range j.starts[name] {
				runs++
				if tokens[s.token] || s.token == 0 {
					t.Errorf("token %d of %q is not unique", s.token, name)
				}
				tokens[s.token] = true
			}
		}
		t.Logf("%d runs of 10 names, %d instances killed", runs, len(dead))
	})
}

// onlyNeededCreates asserts that a create is refused for two reasons alone:
// another follower's came first, that had seen the same; or the holder had not
// been heard of for half of its ttl.
func (w *world) onlyNeededCreates(ttl time.Duration) {
	w.Helper()
	made, heard := map[string]time.Time{}, map[string]time.Time{}
	for _, r := range w.server.Requests() {
		switch {
		case r.Status >= 300 && r.Op == gcstest.Create:
			if r.Time.Sub(made[r.Object]) > time.Second && r.Time.Sub(heard[r.Object]) < ttl/2 {
				w.Errorf("%s sent a create for %s, whose holder had written %v before", r.Client, r.Object, r.Time.Sub(heard[r.Object]))
			}
		case r.Status >= 300:
		case r.Op == gcstest.Create:
			made[r.Object], heard[r.Object] = r.Time, r.Time
		case r.Op == gcstest.Update:
			heard[r.Object] = r.Time
		}
	}
}
