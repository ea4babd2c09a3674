package gcslock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// changeInterval is how often Cloud Storage lets one object change
	// (https://cloud.google.com/storage/quotas#objects). It often takes more for
	// a while, so that a Lock keeps to it only where it has been refused.
	changeInterval = time.Second

	// limitMemory is for how long it does: somewhat longer than a few turns of
	// two changes each, so that a Lock that others go before does not forget.
	limitMemory = 30 * time.Second

	// shortCourtesy and longCourtesy bound the pause of a Lock that has met
	// nobody else. One of less than leastCourtesy would let nobody in, because looks are
	// many times that apart.
	leastCourtesy = time.Millisecond
	shortCourtesy = 50 * time.Millisecond
	longCourtesy  = time.Second

	// turnsAlone is of how many turns in a row, where changes are refused, a Lock that
	// has met nobody offers one to others, and offerTime for how long after a release.
	// It knows to the millisecond when the object can be created again, and others
	// find that out with a create each third of a second: without the offer it would
	// have every turn. Where it is alone it costs a thirtieth of the turns.
	turnsAlone = 8
	offerTime  = changeInterval * 3 / 2
)

// A past is what a Lock has learnt from its earlier requests and leases.
type past struct {
	mu sync.Mutex // guards the rest

	released bool          // a lease was
	freed    reading       // when its object was gone
	held     time.Duration // how long it had been held, with those that it was passed on to
	alone    int           // releases since the Lock met anybody
	round    time.Duration // how long the last acquisition waited for a turn of each of the others; 0 if there were none

	limited bool    // a change was refused for coming too soon after another
	refused reading // when
	changes bool    // a change of ours was acknowledged
	changed reading // when the last one was
}

// release notes the end of a lease.
func (p *past) release(freed reading, held time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released, p.freed, p.held = true, freed, held
	if p.alone++; p.round > 0 {
		p.alone = 0
	}
}

// A company is whom an acquisition met while it waited, in other processes.
type company struct {
	last    int64           // the generation that was seen last
	turns   int             // different ones that were seen
	holders map[string]bool // whose they were
}

func (c *company) meet(holder *Info) {
	if holder.Generation == c.last {
		return
	}
	if c.holders == nil {
		c.holders = make(map[string]bool)
	}
	c.last, c.turns = holder.Generation, c.turns+1
	c.holders[fmt.Sprintf("%q %q %d", holder.Owner, holder.Host, holder.PID)] = true
}

// round is how much of a wait was for one turn of each: one who had turn after turn
// while we waited is not to be given as many again.
func (c *company) round(waited time.Duration) time.Duration {
	if c.turns == 0 {
		return 0
	}
	return waited * time.Duration(len(c.holders)) / time.Duration(c.turns)
}

// noteRound notes what an acquisition that has won waited for.
func (a *acquisition) noteRound() {
	round := a.others.round(a.clock.now().watchedSince(a.outset))
	a.past.mu.Lock()
	defer a.past.mu.Unlock()
	a.past.round = round
}

// courtesy is the pause before the Lock goes for it again, and whether it is for
// others that have been met. One that is there at once when it has released keeps all
// others out, whose looks are pauses apart. Where nobody was met it waits for half
// of what the lock was held for, though not for long, or an eighth of that, which is
// half of the pauses of those who watched it, see pace. Where it had to wait for
// others, who are likely to be there still, it waits for more than half of what a turn
// of each took, so that they have had theirs. For where changes are refused see
// turnsAlone.
func (p *past) courtesy(now reading, longest time.Duration) (d time.Duration, met bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		return 0, false
	}
	if p.alone%turnsAlone == 1 && p.limitedAt(now) {
		return offerTime - now.watchedSince(p.freed), true
	}
	d = max(min(p.held/2, shortCourtesy), min(p.held/8, longCourtesy), p.round*5/8)
	if d < leastCourtesy {
		return 0, p.round > 0
	}
	return min(d, longest) - now.watchedSince(p.freed), p.round > 0
}

// change notes the outcome of a create, update or delete.
func (p *past) change(o outcome, now reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch o {
	case done:
		p.changes, p.changed = true, now
	case refused:
		p.limited, p.refused = true, now
	}
}

// isLimited tells whether changes have been refused lately.
func (p *past) isLimited(now reading) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limitedAt(now)
}

// limitedAt is isLimited for who has the mutex.
func (p *past) limitedAt(now reading) bool {
	return p.limited && now.watchedSince(p.refused) <= limitMemory
}

// spacing is how long to wait with the next change where changes are refused: until
// it is an interval after the last one of ours. That of somebody else is not known.
func (p *past) spacing(now reading) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.changes || !p.limitedAt(now) {
		return 0
	}
	return changeInterval - now.watchedSince(p.changed)
}

// space waits with the next change of the object for as long as that.
func (l *Lock) space(ctx context.Context) error {
	d := l.past.spacing(l.clock.now())
	if d <= 0 {
		return nil
	}
	return sleep(ctx, d)
}
