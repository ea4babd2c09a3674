package main

import (
	"context"
	"time"
)

// What can happen to a request.
const (
	fateFine = iota
	fateRefused
	fateFailsBefore
	fateFailsAfter
	fateReplyLost
	fateRequestLost
	fateLate
	fateSlow
	fateForbidden
	fateTwice
	fateLastWords // answered as late as can be, and nothing gets through from then on
	fates
)

// An answer is what the network says for the cloud, which knows nothing of it.
type answer int

const (
	silence answer = iota
	refusal
	failure
	denial
)

// An exchange is one request, in whatever form it and its reply have.
type exchange[R any] struct {
	op      string
	apply   func() R       // at the cloud, under the world's lock
	say     func(answer) R // a reply in its place
	outcome func(R) string // for the history
}

// send carries one request, and pauses around it.
func send[R any](ctx context.Context, p *process, x exchange[R]) R {
	m := p.client.machine
	m.gate()
	m.mayPause()
	if p.dead.Load() {
		return x.say(denial)
	}
	r := carry(ctx, p, x)
	m.gate()
	m.mayPause()
	return r
}

// carry is the network's part.
func carry[R any](ctx context.Context, p *process, x exchange[R]) R {
	c := p.client
	w, d := c.world, c.machine.fate.at(purpose(x.op))
	there, back := d.between(5*time.Millisecond, 60*time.Millisecond), d.between(5*time.Millisecond, 60*time.Millisecond)
	fate := fateFine
	if cut := c.cutOff(); cut {
		fate = []int{fateRequestLost, fateRequestLost, fateLate}[d.pick(3)]
	} else if !w.calm() && d.chance(w.plan.faults) {
		fate = 1 + d.pick(fates-1)
	}
	switch fate {
	case fateRequestLost:
		return unanswered(ctx, p, x)
	case fateLate:
		// The network delivers it when the client has long given up.
		late := d.between(time.Second, 20*time.Second)
		time.AfterFunc(late, func() { deliver(p, x, ", late") })
		return unanswered(ctx, p, x)
	case fateLastWords:
		if deadline, ok := ctx.Deadline(); ok {
			back = d.between(0, time.Until(deadline)-there)
		}
		c.cutFor(d.between(5*time.Second, 25*time.Second))
	case fateSlow:
		there, back = d.between(0, 8*time.Second), d.between(0, 8*time.Second)
	}
	if !rest(ctx, there) {
		// Sent is sent: it arrives all the same.
		time.AfterFunc(d.between(time.Microsecond, time.Second), func() { deliver(p, x, ", abandoned") })
		return unanswered(ctx, p, x)
	}
	r, answered := arrive(p, x, fate)
	if !answered || !rest(ctx, back) {
		return unanswered(ctx, p, x)
	}
	return r
}

// arrive is what the cloud makes of the request, and what becomes of its reply.
func arrive[R any](p *process, x exchange[R], fate int) (r R, answered bool) {
	switch fate {
	case fateRefused:
		return x.say(refusal), true
	case fateFailsBefore:
		return x.say(failure), true
	case fateForbidden:
		return x.say(denial), true
	case fateTwice:
		deliver(p, x, "")
		return deliver(p, x, ", again"), true
	}
	r = deliver(p, x, "")
	if fate == fateFailsAfter {
		return x.say(failure), true
	}
	return r, fate != fateReplyLost
}

// deliver has the cloud apply the request, with every check that a moment
// allows before and after it.
func deliver[R any](p *process, x exchange[R], how string) R {
	w := p.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	w.checkHolders()
	w.checkIdle()
	before := w.cloud.object
	r := x.apply()
	w.logRequest(p, x.op+how, x.outcome(r))
	w.checkChange(p, before)
	w.checkHolders()
	return r
}

// purpose tells the operations apart, by the letters that differ.
func purpose(op string) uint64 { return uint64(op[0]) << 8 }

// unanswered ends with the connection or with the caller's patience.
func unanswered[R any](ctx context.Context, p *process, x exchange[R]) R {
	d := p.client.machine.fate.at(purpose(x.op) + 1)
	if d.chance(0.5) {
		rest(ctx, d.below(2*time.Second))
	} else {
		<-ctx.Done()
	}
	// The end of the validity ends the request and the lease at one instant.
	time.Sleep(d.below(time.Microsecond))
	p.client.world.log(p.name, x.op+": no answer", 0, 0)
	return x.say(silence)
}

// rest sleeps unless ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
