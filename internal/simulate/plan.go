package main

import "time"

// A plan is what a seed makes of one schedule: who takes part, and how bad the
// world is to them.
type plan struct {
	clients, sections int
	chaos             time.Duration // faults, humans and crashes end then
	dates             bool          // replies tell the server's time, as over HTTP
	rateLimited       bool          // one change a second
	older             bool          // a client of the older format takes part
	humans            int           // deeds of humans
	hold              time.Duration // the longest piece of work, 0: according to the ttl

	faults    float64 // of a request
	pauses    float64 // of a look at the clock, a request or a reply
	partition float64 // of a client, per ten seconds
	crash     float64 // the same
	steps     float64 // the same, of its wall clock
}

// newPlan draws a plan. Some schedules are calm but for one kind of trouble, so
// that one does not hide another.
func newPlan(seed uint64) plan {
	d := newDice(seed, 0)
	p := plan{
		clients: 4, sections: 5,
		chaos:       d.between(10*time.Second, 60*time.Second),
		dates:       d.chance(0.7),
		rateLimited: d.chance(0.25),
	}
	if d.chance(0.05) {
		// Long waits, in which clocks drift apart.
		p.hold, p.chaos, p.sections = 5*time.Minute, 8*time.Minute, 2
	}
	p.older = d.chance(0.1)
	trouble := func(p float64, most float64) float64 {
		if !d.chance(p) {
			return 0
		}
		return most * d.share()
	}
	p.faults = trouble(0.7, 0.4)
	p.pauses = trouble(0.5, 0.03)
	p.partition = trouble(0.5, 0.6)
	p.crash = trouble(0.5, 0.4)
	p.steps = trouble(0.3, 0.5)
	if d.chance(0.3) {
		p.humans = 1 + d.pick(4)
	}
	return p
}
