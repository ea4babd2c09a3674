package gcslock

import (
	"context"
	"time"
)

// mostRefusals is after how many creates in a row that were refused for coming too
// soon a look is due: more than a second's worth.
const mostRefusals = 4

// A pace gives the pauses between looks at a lock that others hold. One that was
// just taken may be a short section of many, and is looked at often; the longer
// the same holder has been seen, the less another look is likely to tell.
type pace struct {
	random            source
	shortest, longest time.Duration

	holder  int64         // the generation last seen
	since   reading       // when it was first seen
	holders int           // how many were seen in this wait
	turn    time.Duration // how long the one before was seen
}

// next is the pause after a look that showed the generation. It is drawn from half
// to one and a half times an aim, so that a herd that came together does not stay
// together: a quarter of the time for which the holder has been seen, or the one before
// it was, so that the end of a hold is noticed late by about that share of a hold, and by
// less than three eighths.
func (p *pace) next(generation int64, now reading) time.Duration {
	if generation != p.holder {
		if p.holders > 0 {
			p.turn = now.watchedSince(p.since)
		}
		p.holder, p.since = generation, now
		p.holders++
	}
	// The shortest pauses of a holder that is new: twice the shortest that is allowed,
	// and down to that where the lock has changed hands while we waited, and will soon
	// again. So whoever let others go first is the likelier to be next.
	aim := p.shortest * time.Duration(5-min(p.holders, 3)) / 2
	aim = max(aim, now.watchedSince(p.since)/4, p.turn/4)
	// Where more than eight others got in before us, as many are likely to be
	// looking, and each of them less often is as good for all.
	aim = min(aim*time.Duration(max(8, p.holders))/8, p.longest)
	if aim == p.longest {
		return aim
	}
	return max(p.shortest, min(aim/2+p.random(aim+1), p.longest))
}

// sleep pauses between looks, but not beyond the time at which the object may
// turn out to be stale. That ctx ended is seen by the loop.
func (a *acquisition) sleep(ctx context.Context) {
	d := a.nextPause()
	if a.wake > 0 {
		d = min(d, a.wake)
	}
	_ = sleep(ctx, d)
	if !a.try {
		a.deletes = 0
	}
}

// nextPause is the pause after what was heard last.
func (a *acquisition) nextPause() time.Duration {
	switch {
	case a.refusals > 0:
		return changeInterval / 3
	case a.try || !a.locked || a.last != nil || a.holder.Generation == 0:
		return a.pause.next()
	}
	a.pause.last = 0 // what failed before is over
	now := a.clock.now()
	switch {
	case a.standsBy:
		return max(a.standby(a.holder), a.minWait)
	case a.past.isLimited(now):
		// It changes hands once in two seconds at the most. The more others were met,
		// the less does it matter when any one of them looks.
		spread := changeInterval * time.Duration(min(1+len(a.others.holders), 4))
		return max(2*changeInterval+a.random(spread), a.minWait)
	}
	return a.pace.next(a.holder.Generation, now)
}
