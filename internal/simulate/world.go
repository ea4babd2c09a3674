package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/linear"
)

// A world is one schedule: a cloud, the clients, and what is observed of them,
// by a clock that none of them can see.
type world struct {
	plan  plan
	seed  uint64
	began time.Time

	mu      sync.Mutex // guards the rest
	cloud   cloud
	clients []*client
	held    []*tenure
	runs    map[int64]int                 // leases that were got, by token
	removed map[int64]bool                // generations that humans and older clients removed
	told    map[leaseID]gcslock.EventKind // what was told last of each lease
	history []event
	ops     []linear.Op // what the clients saw of it, see record.go
	sorry   string      // the first violation

	operator *client // who breaks locks by hand, with the library

	idle     time.Time // since when nobody holds the lock, zero if somebody does
	idleWith int64     // the generation that is in the way, 0 if none is
	totals
}

// totals are what a run of many schedules tells.
type totals struct {
	sections, passed, takeovers, lost, crashes, requests int
}

func (t *totals) add(o totals) {
	t.sections += o.sections
	t.passed += o.passed
	t.takeovers += o.takeovers
	t.lost += o.lost
	t.crashes += o.crashes
	t.requests += o.requests
}

// limit is how long the clients may take to end after the chaos: each remaining
// section may have to wait for a dead lock first.
const limit = 30 * time.Minute

// simulate runs the schedule of a seed in a bubble of virtual time. It writes the
// history into the room of an earlier one, if it is given one.
func simulate(t *testing.T, seed uint64, history []event) *world {
	w := newWorld(seed, history)
	synctest.Test(t, func(t *testing.T) { w.run() })
	return w
}

// simulateReal runs it through the storage client and gcstest.
func simulateReal(t *testing.T, seed uint64, history []event) *world {
	w := newWorld(seed, history)
	w.plan.older = false // it knows no HTTP
	synctest.Test(t, func(t *testing.T) {
		w.cloud.real = newRealCloud(w.plan)
		w.run()
	})
	return w
}

func newWorld(seed uint64, history []event) *world {
	return &world{
		seed: seed, plan: newPlan(seed), history: history[:0],
		runs: make(map[int64]int), removed: make(map[int64]bool),
		told: make(map[leaseID]gcslock.EventKind),
	}
}

func (w *world) run() {
	w.began = time.Now()
	w.cloud.rateLimited, w.cloud.dates = w.plan.rateLimited, w.plan.dates
	ctx, cancel := context.WithTimeout(context.Background(), w.plan.chaos+limit)
	defer cancel()
	w.operator = newClient(w, w.plan.clients)
	// The older client may wait for ever for what none but the others would
	// remove, and troubles without clients are none.
	worldly, enough := context.WithCancel(ctx)
	defer enough()
	var working, running sync.WaitGroup
	for i := range w.plan.clients {
		c := newClient(w, i)
		w.clients = append(w.clients, c)
		working.Go(func() { c.run(ctx) })
		running.Go(func() { c.suffer(worldly) })
	}
	running.Go(func() { w.humans(worldly) })
	if w.plan.older {
		running.Go(func() { newOlder(w).run(worldly) })
	}
	working.Wait()
	enough()
	running.Wait()
	// What crashed processes and the network have under way ends, too.
	time.Sleep(time.Minute)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkEnd(ctx)
}

// calm tells whether the chaos is over.
func (w *world) calm() bool { return time.Since(w.began) > w.plan.chaos }

// settled tells whether its requests and pauses are over, for so long: they last
// into the calm.
func (w *world) settled(long time.Duration) bool {
	return time.Since(w.began) > w.plan.chaos+20*time.Second+long
}

// An event is one line of the history.
type event struct {
	at   time.Duration
	who  string
	what string
	then string // of a request, its outcome
	a, b int64
}

func (w *world) log(who, what string, a, b int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked(who, what, a, b)
}

func (w *world) logRequest(p *process, op, outcome string) {
	e := event{at: time.Since(w.began), who: p.name, what: op, then: outcome}
	if o := w.cloud.object; o != nil {
		e.a, e.b = o.Generation, o.Metageneration
	}
	w.history = append(w.history, e)
}

func (w *world) logLocked(who, what string, a, b int64) {
	w.history = append(w.history, event{at: time.Since(w.began), who: who, what: what, a: a, b: b})
}

func (e event) String() string {
	s := fmt.Sprintf("%14s  %-8s %s", e.at, e.who, e.what)
	if e.then != "" {
		s += ": " + e.then
	}
	switch {
	case e.what == "pause" || e.what == "partition" || e.what == "wall clock steps":
		s += " " + time.Duration(e.a).String()
	case e.b != 0:
		s += fmt.Sprintf(" (%d.%d)", e.a, e.b)
	case e.a != 0:
		s += fmt.Sprintf(" (%d)", e.a)
	}
	return s
}

// violate notes what must never happen; the first counts.
func (w *world) violate(format string, args ...any) {
	if w.sorry == "" {
		w.sorry = fmt.Sprintf(format, args...)
		w.logLocked("VIOLATED", w.sorry, 0, 0)
	}
}
