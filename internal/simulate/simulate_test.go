package main

import (
	"flag"
	"slices"
	"testing"
)

var schedules = flag.Uint64("simulate.schedules", defaultSchedules, "how many schedules TestSchedules runs")

// TestSchedules: none of them fails.
func TestSchedules(t *testing.T) {
	done, sum, bad := search(t, 1, *schedules, 2, func(uint64) {})
	if bad != nil {
		bad.print()
		t.Fatalf("seed %d: %s", bad.seed, bad.sorry)
	}
	t.Logf("%d schedules: %d sections, %d requests, %d takeovers, %d lost leases, %d crashes",
		done, sum.sections, sum.requests, sum.takeovers, sum.lost, sum.crashes)
	// Schedules in which nothing goes wrong would prove nothing.
	n := int(*schedules)
	if sum.takeovers < n/4 || sum.lost < n/4 || sum.crashes < n/4 || sum.sections < 15*n {
		t.Errorf("too little happened: %+v", sum)
	}
}

// TestSameSeedSameHistory: what a seed shows, it shows again.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= seedsRunTwice; seed++ {
		first, second := simulate(t, seed, nil), simulate(t, seed, nil)
		if slices.Equal(first.history, second.history) {
			continue
		}
		for i := range min(len(first.history), len(second.history)) {
			if a, b := first.history[i], second.history[i]; a != b {
				t.Errorf("seed %d, line %d:\n%v\n%v", seed, i, a, b)
				break
			}
		}
		if len(first.history) != len(second.history) {
			t.Errorf("seed %d: %d lines and %d", seed, len(first.history), len(second.history))
		}
	}
}
