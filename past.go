package gcslock

import (
	"sync"
	"time"
)

const (
	// changeInterval is how often Cloud Storage lets one object change
	// (https://cloud.google.com/storage/quotas#objects). It often takes more for
	// a while, so that a Lock keeps to it only where it has been refused.
	changeInterval = time.Second

	// limitMemory is for how long it does.
	limitMemory = 30 * time.Second

	// courtesyLimit bounds the pause of a Lock that has met nobody else.
	courtesyLimit = 50 * time.Millisecond
)

// A past is what a Lock has learnt from its earlier requests and leases.
type past struct {
	mu sync.Mutex // guards the rest

	released bool          // a lease was
	freed    reading       // when
	held     time.Duration // how long it had been held
	waited   time.Duration // how long the last acquisition had to wait for others

	limited bool    // a change was refused for coming too soon after another
	refused reading // when
	changed reading // when the last change of ours was acknowledged
}

// release notes the end of a lease.
func (p *past) release(now reading, held time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released, p.freed, p.held = true, now, held
}

// wait notes what an acquisition had to wait for holders in other processes.
func (p *past) wait(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited = d
}

// courtesy is the pause before the Lock goes for it again. One that is there at
// once when it has released keeps all others out, whose looks are pauses apart: it
// waits for half of what the lease lasted, though not for long; and where it had to
// wait for others, who are likely to be there still, for more than half of that
// wait, so that they have had their turns.
func (p *past) courtesy(now reading, longest time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		return 0
	}
	d := max(p.waited*5/8, min(p.held/2, courtesyLimit))
	return min(d, longest) - now.watchedSince(p.freed)
}

// change notes the outcome of a create, update or delete.
func (p *past) change(o outcome, now reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch o {
	case done:
		p.changed = now
	case refused:
		p.limited, p.refused = true, now
	}
}

// isLimited tells whether changes have been refused lately.
func (p *past) isLimited(now reading) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limited && now.watchedSince(p.refused) <= limitMemory
}

// spacing is how long to wait with the next change where changes are refused: as
// long as makes sense after the last one of ours. That of somebody else is not
// known.
func (p *past) spacing(now reading) time.Duration {
	if !p.isLimited(now) {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return changeInterval - now.watchedSince(p.changed)
}
