package main

import (
	"context"

	"github.com/gcslock/gcslock"
)

// A telling is the observer of the locks of a world. It checks that what is told
// of each lease begins with its acquisition and ends with one end.
type telling struct{ world *world }

// A leaseID is what tells the leases of a world apart.
type leaseID struct {
	token    int64
	sequence int
}

func idOf(l *gcslock.Lease) leaseID { return leaseID{l.Token(), l.Sequence()} }

func (t telling) Observe(_ context.Context, e gcslock.Event) {
	w := t.world
	if e.Token == 0 {
		return // on the way to a lease
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := leaseID{e.Token, e.Sequence}
	last, begun := w.told[id]
	if begun == (e.Kind == gcslock.EventAcquired) || isEnd(last) {
		w.violate("of token %d, number %d, %s was told after %q", e.Token, e.Sequence, e.Kind, last)
	}
	w.told[id] = e.Kind
}

func isEnd(kind gcslock.EventKind) bool {
	return kind == gcslock.EventLost || kind == gcslock.EventReleased
}

// checkToldEnd: the end of a lease that was given back has been told, as what it
// was. Needs mu.
func (w *world) checkToldEnd(id leaseID, lost bool) {
	want := gcslock.EventReleased
	if lost {
		want = gcslock.EventLost
	}
	if got := w.told[id]; got != want {
		w.violate("the last that was told of token %d, number %d, is %q, want %q", id.token, id.sequence, got, want)
	}
}
