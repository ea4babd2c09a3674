package main

import (
	"context"

	"github.com/gcslock/gcslock"
)

// A telling is the observer of the locks of a world. It checks that what is told
// of each lease begins with its acquisition and ends with one end.
type telling struct{ world *world }

func (t telling) Observe(_ context.Context, e gcslock.Event) {
	w := t.world
	if e.Token == 0 {
		return // on the way to a lease
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last, begun := w.told[e.Token]
	if begun == (e.Kind == gcslock.EventAcquired) || isEnd(last) {
		w.violate("of token %d %s was told after %q", e.Token, e.Kind, last)
	}
	w.told[e.Token] = e.Kind
}

func isEnd(kind gcslock.EventKind) bool {
	return kind == gcslock.EventLost || kind == gcslock.EventReleased
}

// checkToldEnd: the end of a lease that was given back has been told, as what it
// was. Needs mu.
func (w *world) checkToldEnd(token int64, lost bool) {
	want := gcslock.EventReleased
	if lost {
		want = gcslock.EventLost
	}
	if got := w.told[token]; got != want {
		w.violate("the last that was told of token %d is %q, want %q", token, got, want)
	}
}
