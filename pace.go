package gcslock

import "time"

// A pace gives the pauses between looks at a lock that others hold. One that was
// just taken may be a short section of many, and is looked at often; the longer
// the same holder has been seen, the less another look is likely to tell.
type pace struct {
	random            source
	shortest, longest time.Duration

	holder  int64   // the generation last seen
	since   reading // when it was first seen
	holders int     // how many were seen in this wait
}

// next is the pause after a look that showed the generation.
func (p *pace) next(generation int64, now reading) time.Duration {
	if generation != p.holder {
		p.holder, p.since = generation, now
		p.holders++
	}
	aim := 2 * p.shortest
	if p.holders > 1 {
		aim = p.shortest * 3 / 2 // it changes hands, and soon again
	}
	aim = max(aim, now.watchedSince(p.since)/4)
	// Where one after the other gets in, many are looking.
	aim = min(aim*time.Duration(max(8, p.holders))/8, p.longest)
	if aim == p.longest {
		return aim
	}
	// From half to one and a half times the aim, so that a herd that came
	// together does not stay together.
	return max(p.shortest, min(aim/2+p.random(aim+1), p.longest))
}
