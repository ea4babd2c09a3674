package main

import (
	"flag"
	"slices"
	"testing"

	"github.com/gcslock/gcslock/internal/linear"
)

var schedules = flag.Uint64("simulate.schedules", defaultSchedules, "how many schedules TestSchedules runs")

// TestSchedules: none of them fails.
func TestSchedules(t *testing.T) { noneFails(t, simulate, *schedules) }

// TestRealSchedules: nor through the storage client.
func TestRealSchedules(t *testing.T) { noneFails(t, simulateReal, *schedules/20) }

func noneFails(t *testing.T, run schedule, n uint64) {
	done, sum, bad := search(t, run, 1, n, 2, func(uint64) {})
	if bad != nil {
		bad.print()
		t.Fatalf("seed %d: %s", bad.seed, bad.sorry)
	}
	t.Logf("%d schedules: %+v", done, sum)
	// Schedules in which nothing goes wrong would prove nothing.
	if each := int(n); sum.takeovers < each/4 || sum.lost < each/4 || sum.crashes < each/4 || sum.sections < 15*each {
		t.Errorf("too little happened: %+v", sum)
	}
}

// TestSameSeedSameHistory: what a seed shows, it shows again.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= seedsRunTwice; seed++ {
		sameTwice(t, simulate, seed)
	}
	for seed := uint64(1); seed <= seedsRunTwice/20; seed++ {
		sameTwice(t, simulateReal, seed)
	}
}

func sameTwice(t *testing.T, run schedule, seed uint64) {
	first, second := run(t, seed, nil), run(t, seed, nil)
	for i := range min(len(first.history), len(second.history)) {
		if a, b := first.history[i], second.history[i]; a != b {
			t.Errorf("seed %d, line %d:\n%v\n%v", seed, i, a, b)
			return
		}
	}
	if len(first.history) != len(second.history) {
		t.Errorf("seed %d: %d lines and %d", seed, len(first.history), len(second.history))
	}
}

// TestLinearizable: what the clients saw of the lock is what a mutex with leases
// would have shown them.
func TestLinearizable(t *testing.T) {
	seen := map[linear.Kind]int{}
	for seed := uint64(1); seed <= *schedules/10; seed++ {
		w := simulate(t, seed, nil)
		if err := linear.Check(w.ops); err != nil {
			w.print()
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, o := range w.ops {
			seen[o.Kind]++
		}
	}
	for _, kind := range []linear.Kind{linear.Acquire, linear.Hold, linear.Release, linear.End, linear.Break} {
		if seen[kind] == 0 {
			t.Errorf("no %v in any history", kind)
		}
	}
}

// TestDoctoredHistory: a history in which the next one has got the lock just
// before its holder was sure of it for the last time is rejected.
func TestDoctoredHistory(t *testing.T) {
	doctored := 0
	for seed := uint64(1); seed <= 40; seed++ {
		w := simulate(t, seed, nil)
		if len(w.removed) > 0 {
			continue // its holder may be sure of a lock that was broken
		}
		ops := w.ops
		held := slices.IndexFunc(ops, func(o linear.Op) bool { return o.Kind == linear.Hold })
		if held < 0 {
			continue
		}
		next := slices.IndexFunc(ops[held:], func(o linear.Op) bool { return o.Kind == linear.Acquire })
		if next < 0 {
			continue
		}
		o := &ops[held+next]
		o.Return = ops[held].Call - 1
		o.Call = min(o.Call, o.Return)
		if linear.Check(ops) == nil {
			t.Errorf("seed %d: %d was got while %d was held, and nobody noticed", seed, o.Token, ops[held].Token)
		}
		doctored++
	}
	if doctored < 10 {
		t.Errorf("only %d histories to doctor", doctored)
	}
}
