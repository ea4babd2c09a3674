package gcslock

import (
	"context"

	"github.com/gcslock/gcslock/internal/inside"
)

func init() {
	inside.Replace = func(l *Lock, seams inside.Seams) {
		if seams.Store != nil {
			l.store = insideStore{seams.Store, l.url}
		}
		l.clock = insideClock(seams.Now)
		l.random = seams.Random
	}
	inside.Valid = func(l *Lease, now inside.Reading) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.err == nil && l.left(readingOf(now)) > 0
	}
	inside.Current = (*Lock).current
	inside.Failed = func(op, url string, err error) (inside.Outcome, error) {
		r := (&gcsStore{url: url}).failed(operation(op), err)
		return inside.Outcome(r.outcome), r.err
	}
	inside.URL = objectURL
	inside.Printable = printable
	inside.Summary = summary
	inside.Crash = func(l *Lease, cause error) { _, _ = l.end(cause) }
}

type insideClock func() inside.Reading

func (c insideClock) now() reading { return readingOf(c()) }

func readingOf(r inside.Reading) reading { return reading{r.Mono, r.Awake, r.Wall} }

// insideStore is a store of the simulator's.
type insideStore struct {
	inside.Store
	url string
}

func (s insideStore) create(ctx context.Context, metadata map[string]string) reply {
	return s.reply(opCreate, s.Create(ctx, metadata))
}

func (s insideStore) read(ctx context.Context) reply {
	return s.reply(opRead, s.Read(ctx))
}

func (s insideStore) update(ctx context.Context, v version, metadata map[string]string) reply {
	return s.reply(opUpdate, s.Update(ctx, inside.Version{Generation: v.generation, Metageneration: v.metageneration}, metadata))
}

func (s insideStore) remove(ctx context.Context, v version) reply {
	return s.reply(opDelete, s.Remove(ctx, inside.Version{Generation: v.generation, Metageneration: v.metageneration}))
}

func (s insideStore) reply(op operation, r inside.Reply) reply {
	out := reply{
		outcome: outcome(r.Outcome),
		object: stored{
			version:  version{r.Object.Generation, r.Object.Metageneration},
			metadata: r.Object.Metadata,
			updated:  r.Object.Updated,
		},
		date: r.Date,
	}
	if r.Err != nil {
		out.err = &requestError{op: op, url: s.url, denied: r.Denied, err: r.Err}
	}
	return out
}
