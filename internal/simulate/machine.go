package main

import (
	"sync"
	"time"

	"github.com/gcslock/gcslock/internal/inside"
)

// A machine has clocks that are wrong in all ways that the protocol allows for,
// and freezes at times: a stopped process, or a suspended machine.
type machine struct {
	world  *world
	name   string
	fate   fate
	rate   float64 // of its clocks
	offset time.Duration

	mu        sync.Mutex // guards the rest
	stepped   time.Duration
	still     time.Time // since when it is frozen
	frozen    time.Time // until
	asleep    time.Time // since when it is suspended, zero if it is not
	suspended time.Duration
	woke      time.Time
}

func newMachine(w *world, name string, d *dice) *machine {
	return &machine{
		world: w, name: name,
		fate:   fate{seed: d.pcg.Uint64(), began: w.began},
		rate:   clockRate(d),
		offset: d.between(-5*time.Minute, 5*time.Minute),
	}
}

// maxDrift is how wrong a clock's rate may be, either way. The margin of a tenth
// of the ttl allows for two of them that err in opposite directions.
const maxDrift = 0.045

// clockRate is often an extreme, because faults hide between those.
func clockRate(d *dice) float64 {
	switch d.pick(5) {
	case 0:
		return 1 - maxDrift
	case 1:
		return 1 + maxDrift
	}
	return 1 + maxDrift*(2*d.share()-1)
}

// reading is what its clocks say, frozen or not.
func (m *machine) reading() inside.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.readingLocked()
}

func (m *machine) readingLocked() inside.Reading {
	now := time.Now()
	suspended := m.suspended
	if !m.asleep.IsZero() {
		end := now
		if m.frozen.Before(now) {
			end = m.frozen
		}
		suspended += end.Sub(m.asleep)
	}
	elapsed := now.Sub(m.world.began)
	ticks := func(d time.Duration) time.Duration { return time.Duration(m.rate * float64(d)) }
	return inside.Reading{
		Mono:  ticks(elapsed - suspended),
		Awake: ticks(elapsed),
		Wall:  m.world.began.Add(m.offset + m.stepped + ticks(elapsed)),
	}
}

// now is the clock that the library sees. It takes no time, but the process may
// be stopped before the look, or between the look and the code that uses it.
func (m *machine) now() inside.Reading {
	m.gate()
	r := m.reading()
	m.mayPause()
	return r
}

// step sets the wall clock.
func (m *machine) step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stepped += d
}

// freeze stops whatever runs on the machine for d; suspended, its monotonic
// clock as well. What else runs at this very instant is not stopped, whether it
// comes before or after: that has no order. It is false if it is frozen already.
func (m *machine) freeze(d time.Duration, suspended bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.thaw()
	now := time.Now()
	if m.frozen.After(now) {
		return false
	}
	m.still, m.frozen = now, now.Add(d)
	if suspended {
		m.asleep = now
	}
	return true
}

// thaw books a suspend that is over. Needs mu.
func (m *machine) thaw() {
	if now := time.Now(); !m.frozen.After(now) {
		if !m.asleep.IsZero() {
			m.suspended += m.frozen.Sub(m.asleep)
			m.asleep = time.Time{}
		}
		m.woke = m.frozen
	}
}

// gate holds whoever runs on the machine while it is frozen. All wake at
// instants of their own, so that their order is the seed's.
func (m *machine) gate() {
	for {
		m.mu.Lock()
		m.thaw()
		now := time.Now()
		stopped := m.frozen.After(now) && m.still.Before(now)
		m.mu.Unlock()
		if !stopped {
			return
		}
		m.sleep(site())
	}
}

// sleep lasts until the machine goes on.
func (m *machine) sleep(here uint64) {
	m.mu.Lock()
	left := time.Until(m.frozen)
	m.mu.Unlock()
	time.Sleep(left + m.fate.at(here).below(time.Microsecond))
}

// mayPause freezes the machine here and now, by chance.
func (m *machine) mayPause() {
	if m.world.plan.pauses == 0 || m.world.calm() {
		return
	}
	// Most instants are ruled out before their place is looked up, which costs
	// more than all the rest.
	const places = 8
	if m.fate.roll(0) >= places*m.world.plan.pauses {
		return
	}
	here := site()
	if m.fate.roll(here) >= 1./places {
		return
	}
	d := m.fate.at(0)
	length := d.between(0, 100*time.Millisecond)
	if d.chance(0.5) {
		length = d.between(time.Second, 20*time.Second)
	}
	if m.freeze(length, d.chance(0.3)) {
		m.world.log(m.name, "pause", int64(length), 0)
	}
	m.sleep(here)
	m.gate()
}

// awakeFor is how long it has not been frozen for, 0 if it is.
func (m *machine) awakeFor() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.thaw()
	now := time.Now()
	if m.frozen.After(now) {
		return 0
	}
	if m.woke.IsZero() {
		return now.Sub(m.world.began)
	}
	return now.Sub(m.woke)
}
