package gcslock

import (
	"context"
	"time"
)

const (
	// cleanupLimit bounds what a cancelled Acquire spends on deleting what its
	// last create may have made.
	cleanupLimit = 5 * time.Second

	// maxOwnAttempts bounds how many creates of unknown outcome are remembered
	// through a long outage. The requests of older ones ended long ago; one
	// that lands all the same is an orphan until its ttl is over.
	maxOwnAttempts = 32
)

// An ownAttempt is a create of ours whose object we may meet again.
type ownAttempt struct {
	nonce string
	sent  reading
}

// remember keeps an attempt whose object we may meet again.
func (a *acquisition) remember(own ownAttempt) {
	if len(a.ours) == maxOwnAttempts {
		a.ours = a.ours[1:]
	}
	a.ours = append(a.ours, own)
}

// recognise finds the attempt of ours that made the object.
func (a *acquisition) recognise(obj stored) (ownAttempt, bool) {
	for _, own := range a.ours {
		if own.nonce == obj.metadata[keyNonce] {
			return own, true
		}
	}
	return ownAttempt{}, false
}

// cleanUp deletes the object if it is one of ours, on a context of its own:
// the caller's has ended, most likely, and nobody will refresh the object.
func (a *acquisition) cleanUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	for ctx.Err() == nil {
		r := a.read(ctx)
		switch r.outcome {
		case done:
			if _, ours := a.recognise(r.object); !ours {
				return
			}
			if r = a.remove(ctx, r.object.version); r.outcome == done || r.outcome == absent {
				return
			}
		case absent:
			return
		}
		if r.outcome == permanent {
			a.log(ctx, levelWarn, "could not clean up after a create that may have landed", 0, logError(r.err))
			return
		}
		_ = sleep(ctx, a.pause.next())
	}
}
