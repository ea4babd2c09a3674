package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gcslock/gcslock/internal/inside"
)

// A process is one run of a client, from its start to its end or crash. It is
// the store that its lock works on: the way to the cloud, with all that can
// happen there.
type process struct {
	client *client // nil: not a program of this library
	name   string
	ctx    context.Context
	stop   context.CancelFunc
	dead   atomic.Bool
	breaks int64 // the operator's: what it was told to break
}

// human stands for all that was not done by a program.
var human = &process{name: "human"}

var (
	errCut       = errors.New("connection reset")
	errServer    = errors.New("HTTP 503: try again")
	errForbidden = errors.New("HTTP 403: not allowed")
	errDead      = errors.New("the process has crashed")
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

func (p *process) Create(ctx context.Context, metadata map[string]string) inside.Reply {
	return p.send(ctx, "create", func(w *world) inside.Reply { return w.create(p, metadata) })
}

func (p *process) Read(ctx context.Context) inside.Reply {
	return p.send(ctx, "read", func(w *world) inside.Reply { return w.read(p) })
}

func (p *process) Update(ctx context.Context, v inside.Version, metadata map[string]string) inside.Reply {
	return p.send(ctx, "update", func(w *world) inside.Reply { return w.update(p, v, metadata) })
}

func (p *process) Remove(ctx context.Context, v inside.Version) inside.Reply {
	return p.send(ctx, "delete", func(w *world) inside.Reply { return w.remove(p, v) })
}

// send carries one request, and pauses around it.
func (p *process) send(ctx context.Context, op string, apply func(*world) inside.Reply) inside.Reply {
	m := p.client.machine
	m.gate()
	m.mayPause()
	if p.dead.Load() {
		return inside.Reply{Outcome: inside.Permanent, Err: errDead}
	}
	r := p.carry(ctx, op, apply)
	m.gate()
	m.mayPause()
	return r
}

// carry is the network's part.
func (p *process) carry(ctx context.Context, op string, apply func(*world) inside.Reply) inside.Reply {
	c := p.client
	w, d := c.world, c.machine.fate.at(purpose(op))
	there, back := d.between(5*time.Millisecond, 60*time.Millisecond), d.between(5*time.Millisecond, 60*time.Millisecond)
	fate := fateFine
	if cut := c.cutOff(); cut {
		fate = []int{fateRequestLost, fateRequestLost, fateLate}[d.pick(3)]
	} else if !w.calm() && d.chance(w.plan.faults) {
		fate = 1 + d.pick(fates-1)
	}
	switch fate {
	case fateRequestLost:
		return p.unanswered(ctx, op)
	case fateLate:
		// The network delivers it when the client has long given up.
		late := d.between(time.Second, 20*time.Second)
		time.AfterFunc(late, func() { w.apply(p, op+", late", apply) })
		return p.unanswered(ctx, op)
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
		time.AfterFunc(d.between(time.Microsecond, time.Second), func() { w.apply(p, op+", abandoned", apply) })
		return p.unanswered(ctx, op)
	}
	var r inside.Reply
	switch fate {
	case fateRefused:
		r = inside.Reply{Outcome: inside.Refused, Err: errRate}
	case fateFailsBefore:
		r = inside.Reply{Outcome: inside.Unknown, Err: errServer}
	case fateForbidden:
		r = inside.Reply{Outcome: inside.Permanent, Err: errForbidden, Denied: true}
	case fateTwice:
		w.apply(p, op, apply)
		r = w.apply(p, op+", again", apply)
	default:
		r = w.apply(p, op, apply)
	}
	switch fate {
	case fateFailsAfter:
		r = inside.Reply{Outcome: inside.Unknown, Err: errServer}
	case fateReplyLost:
		return p.unanswered(ctx, op)
	}
	if !rest(ctx, back) {
		return p.unanswered(ctx, op)
	}
	return r
}

// purpose tells the operations apart, by the letters that differ.
func purpose(op string) uint64 { return uint64(op[0]) << 8 }

// unanswered ends with the connection or with the caller's patience.
func (p *process) unanswered(ctx context.Context, op string) inside.Reply {
	d := p.client.machine.fate.at(purpose(op) + 1)
	if d.chance(0.5) {
		rest(ctx, d.below(2*time.Second))
	} else {
		<-ctx.Done()
	}
	// The end of the validity ends the request and the lease at one instant.
	time.Sleep(d.below(time.Microsecond))
	p.client.world.log(p.name, op+": no answer", 0, 0)
	return inside.Reply{Outcome: inside.Unknown, Err: errCut}
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
