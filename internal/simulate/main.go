// Command simulate searches for schedules under which the lock fails: two
// holders at once, a lock that nobody gets, a loss that nobody reports. It runs
// the library itself, on a simulated Cloud Storage and in virtual time, where a
// seed decides everything that can go wrong.
//
//	go run ./internal/simulate -schedules 100000 -seed 1
//
// The first seed that fails is printed with its timeline; -schedules 1 with that
// seed replays it.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func main() {
	schedules := flag.Uint64("schedules", 10000, "how many schedules to run")
	seed := flag.Uint64("seed", 1, "the first schedule's seed")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "how many to run at once")
	real := flag.Bool("real", false, "through the storage client and gcstest, a fiftieth as fast")
	verbose := flag.Bool("v", false, "print the timeline of the last schedule, too")
	flag.Parse()
	run := simulate
	if *real {
		run = simulateReal
	}
	// A schedule leaves much garbage and little else.
	debug.SetGCPercent(800)

	// Bubbles of virtual time are to be had from package testing alone.
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "simulate",
		F: func(t *testing.T) {
			began := time.Now()
			tick, end := progress(*schedules)
			done, sum, bad := search(t, run, *seed, *schedules, *workers, tick)
			end()
			fmt.Printf("%d schedules in %v: %d sections, %d of them with a lock passed on, %d requests, %d takeovers, %d lost leases, %d crashes\n",
				done, time.Since(began).Round(time.Millisecond), sum.sections, sum.passed, sum.requests, sum.takeovers, sum.lost, sum.crashes)
			if bad != nil {
				bad.print()
				os.Exit(1)
			}
			if *verbose {
				run(t, *seed, nil).print()
			}
		},
	}}, nil, nil)
}

// progress shows the count to whoever watches, once a second at the most, until
// end.
func progress(of uint64) (tick func(done uint64), end func()) {
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(uint64) {}, func() {}
	}
	var last atomic.Int64
	tick = func(done uint64) {
		now := time.Now().Unix()
		if before := last.Load(); before != now && last.CompareAndSwap(before, now) {
			fmt.Fprintf(os.Stderr, "\r%d of %d schedules", done, of)
		}
	}
	return tick, func() { fmt.Fprintln(os.Stderr) }
}

// A schedule runs one from its seed, see simulate.
type schedule func(t *testing.T, seed uint64, history []event) *world

// search runs schedules until one fails, and returns the failed one with the
// lowest seed among those that were under way.
func search(t *testing.T, run schedule, seed, schedules uint64, workers int, tick func(uint64)) (done uint64, sum totals, bad *world) {
	var next, finished atomic.Uint64
	var mu sync.Mutex // guards sum and bad
	t.Run("workers", func(t *testing.T) {
		for range workers {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				var history []event
				for {
					n := next.Add(1) - 1
					mu.Lock()
					stop := bad != nil || n >= schedules
					mu.Unlock()
					if stop {
						return
					}
					w := run(t, seed+n, history)
					history = w.history
					tick(finished.Add(1))
					mu.Lock()
					sum.add(w.totals)
					if w.sorry != "" && (bad == nil || w.seed < bad.seed) {
						bad = w
					}
					mu.Unlock()
				}
			})
		}
	})
	return finished.Load(), sum, bad
}

// print shows the timeline and how to see it again.
func (w *world) print() {
	fmt.Printf("seed %d: %+v\n", w.seed, w.plan)
	for _, c := range w.clients {
		fmt.Printf("client %s: %v, ttl %v, clocks at %.3f of the true rate, wall clock off by %v, manual %v, reclaim %v, max hold %v, %d workers, passed on %v\n",
			c.machine.name, c.form, c.ttl, c.machine.rate, c.machine.offset, c.manual, c.reclaim, c.maxHold, len(c.workers), c.passes)
	}
	for _, e := range w.history {
		fmt.Println(e)
	}
	if w.sorry != "" {
		real := ""
		if w.cloud.real != nil {
			real = " -real"
		}
		fmt.Printf("\n%s\nreplay: go run ./internal/simulate%s -schedules 1 -seed %d\n", w.sorry, real, w.seed)
	}
}
