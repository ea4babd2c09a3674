package gcslock

import (
	"testing"
	"time"
)

func TestReadingsErrOnTheSafeSide(t *testing.T) {
	from := after(0)
	for _, tt := range []struct {
		name          string
		to            reading
		held, watched time.Duration
	}{
		{"clocks agree", after(time.Minute), time.Minute, time.Minute},
		{"suspended", reading{mono: time.Minute, awake: time.Hour, wall: start}, time.Hour, time.Minute},
		{"second clock behind", reading{mono: time.Minute, awake: -time.Hour, wall: start}, time.Minute, time.Minute},
		{"wall clock forward", reading{mono: time.Minute, awake: time.Minute, wall: start.Add(time.Hour)}, time.Minute, time.Minute},
		{"wall clock back", reading{mono: time.Minute, awake: time.Minute, wall: start.Add(-time.Hour)}, time.Minute, time.Minute},
	} {
		if got := tt.to.heldSince(from); got != tt.held {
			t.Errorf("%s: a holder counts %v, want %v", tt.name, got, tt.held)
		}
		if got := tt.to.watchedSince(from); got != tt.watched {
			t.Errorf("%s: a waiter counts %v, want %v", tt.name, got, tt.watched)
		}
	}
}

// TestSystemClock: both clocks advance, and the second one by no less than the
// first, which is all that a machine that is not suspended can show.
func TestSystemClock(t *testing.T) {
	c := newSystemClock()
	a := c.now()
	var b reading
	for b = c.now(); b.mono-a.mono < time.Millisecond; b = c.now() {
	}
	if awake := b.awake - a.awake; awake < time.Millisecond/2 {
		t.Errorf("the second clock advanced by %v while the monotonic one did by %v", awake, b.mono-a.mono)
	}
	if a.wall.IsZero() || b.wall.Before(a.wall) {
		t.Errorf("wall clock went from %v to %v", a.wall, b.wall)
	}
}
