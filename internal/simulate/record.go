package main

import (
	"time"

	"github.com/gcslock/gcslock/internal/linear"
)

// What follows records the schedule as its clients saw it, for the check of
// linearizability. All of it needs the world's lock.

// record notes what a tenure's holder did, from then until now.
func (w *world) record(t *tenure, kind linear.Kind, from time.Time) {
	w.ops = append(w.ops, linear.Op{
		Kind: kind, Client: int(t.process.client.machine.name[0] - 'a'), Token: t.lease.Token(), Sequence: t.lease.Sequence(),
		Call: from.Sub(w.began), Return: time.Since(w.began),
	})
}

// recordEnd notes how a tenure has ended, and that it was held until believed.
func (w *world) recordEnd(t *tenure, err error) {
	if t.believed.After(t.asked) {
		w.record(t, linear.Hold, t.believed)
		w.ops[len(w.ops)-1].Return = t.believed.Sub(w.began)
	}
	if err == nil {
		w.record(t, linear.Release, t.gaveBack)
	} else {
		w.record(t, linear.End, t.believed)
	}
}

// recordBreak notes that somebody else has removed the object of a lease, or of a
// run of them.
func (w *world) recordBreak(token int64) {
	now := time.Since(w.began)
	w.ops = append(w.ops, linear.Op{Kind: linear.Break, Client: len(w.clients), Token: token, Call: now, Return: now})
}
