package leases

import (
	"testing"
	"time"
)

// TestWatchInterval: what counts as what.
func TestWatchInterval(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{
		-1: 0, 0: 0, 1: 100 * time.Millisecond, time.Second: time.Second, time.Hour: time.Hour,
	} {
		if m := NewManager(nil, "", Config{}, quiet, WithWatchInterval(set)); m.watch != want {
			t.Errorf("%v counts as %v, want %v", set, m.watch, want)
		}
	}
}

// TestJitter: never sooner than asked for, a tenth later at the most, and not
// always the same.
func TestJitter(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 1000 {
		d := jitter(time.Second)
		if d < time.Second || d > 1100*time.Millisecond {
			t.Fatalf("a pause of %v for one of 1s", d)
		}
		seen[d] = true
	}
	if len(seen) < 100 {
		t.Errorf("%d different pauses in 1000", len(seen))
	}
	if d := jitter(1); d != 1 {
		t.Errorf("a pause of %v for one of 1ns", d)
	}
}
