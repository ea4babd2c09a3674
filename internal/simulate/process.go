package main

import (
	"context"
	"errors"
	"sync/atomic"

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

// The process is the store that its lock works on, unless the real storage
// client is: see real.go.

func (p *process) Create(ctx context.Context, metadata map[string]string) inside.Reply {
	return p.send(ctx, "create", func(c *cloud) inside.Reply { return c.create(p, metadata) })
}

func (p *process) Read(ctx context.Context) inside.Reply {
	return p.send(ctx, "read", (*cloud).read)
}

func (p *process) Update(ctx context.Context, v inside.Version, metadata map[string]string) inside.Reply {
	return p.send(ctx, "update", func(c *cloud) inside.Reply { return c.update(v, metadata) })
}

func (p *process) Remove(ctx context.Context, v inside.Version) inside.Reply {
	return p.send(ctx, "delete", func(c *cloud) inside.Reply { return c.remove(v) })
}

func (p *process) send(ctx context.Context, op string, apply func(*cloud) inside.Reply) inside.Reply {
	return send(ctx, p, exchange[inside.Reply]{
		op:      op,
		apply:   func() inside.Reply { return apply(&p.client.world.cloud) },
		say:     say,
		outcome: func(r inside.Reply) string { return outcomes[r.Outcome] },
	})
}

var (
	errCut       = errors.New("connection reset")
	errServer    = errors.New("HTTP 503: try again")
	errForbidden = errors.New("HTTP 403: not allowed")
	errDead      = errors.New("the process has crashed")
)

// say is a reply that does not come from the cloud.
func say(a answer) inside.Reply {
	switch a {
	case refusal:
		return inside.Reply{Outcome: inside.Refused, Err: errRate}
	case failure:
		return inside.Reply{Outcome: inside.Unknown, Err: errServer}
	case denial:
		return inside.Reply{Outcome: inside.Permanent, Err: errForbidden, Denied: true}
	}
	return inside.Reply{Outcome: inside.Unknown, Err: errCut}
}

var outcomes = [...]string{"done", "mismatch", "absent", "refused", "permanent", "unknown"}
