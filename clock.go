package gcslock

import "time"

// A clock is looked at for every judgement about time. It is a seam for tests
// within the package and no option: a wrong clock is a broken lock.
type clock interface{ now() reading }

// A reading is one look at this machine's clocks.
type reading struct {
	mono  time.Duration // Go's monotonic clock. It stops in suspend on Linux.
	awake time.Duration // A clock that goes on in suspend, see awakeClock.
	wall  time.Time     // For what people and older clients read. It may step.
}

// heldSince is how much time may have passed since an earlier reading, at the
// most. A holder counts with it, so that it gives up too early rather than too
// late: after a suspend the clock that went on says more.
func (r reading) heldSince(earlier reading) time.Duration {
	return max(r.mono-earlier.mono, r.awake-earlier.awake)
}

// watchedSince is how much time has certainly passed since an earlier reading.
// A waiter counts with it, so that it calls a lock stale too late rather than
// too early: a wall clock that steps is no part of it.
func (r reading) watchedSince(earlier reading) time.Duration {
	return r.mono - earlier.mono
}

// systemClock reads the machine's clocks, the monotonic one from a start of
// its own.
type systemClock struct{ start time.Time }

func newSystemClock() systemClock { return systemClock{start: time.Now()} }

func (c systemClock) now() reading {
	now := time.Now()
	return reading{mono: now.Sub(c.start), awake: awakeClock(now), wall: now.Round(0)}
}
