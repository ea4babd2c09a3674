package gcslock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// maxPending bounds how many refresh attempts of unknown outcome are
// remembered. One that was forgotten and landed all the same counts as an
// edit by somebody else, which is safe.
const maxPending = 32

// A refreshAttempt is an update of ours that has not been acknowledged.
type refreshAttempt struct {
	id   string
	sent reading
}

// An attemptResult is what one attempt to refresh came to.
type attemptResult int

const (
	attemptDone   attemptResult = iota // the validity counts from this or an earlier attempt of ours
	attemptEdited                      // somebody edited our object: its version is known, the validity as it was
	attemptFailed                      // another attempt may succeed
	attemptLost                        // the lease is over
)

// Refresh renews the lease now, beside the automatic refresher or, with
// [WithManualRefresh], instead of it. It is one write request, and more where
// requests fail for now: attempts go on until ctx ends or a refresh interval
// has passed. A refresh that is under way is waited for first. Its error is [ErrLockAbandoned] once the lease is lost,
// [ErrNotHeld] once it is released, and else the failure of the last attempt,
// which leaves the lease as valid as it was.
func (l *Lease) Refresh(ctx context.Context) error { return l.refresh(ctx, false) }

// refresh is one refresh, with all its attempts or with one.
func (l *Lease) refresh(ctx context.Context, once bool) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return fmt.Errorf("gcslock: refresh %s: %w", l.lock.url, ctx.Err())
	case <-l.ctx.Done():
		return l.Err()
	}
	if err := ctx.Err(); err != nil && l.Err() == nil {
		return fmt.Errorf("gcslock: refresh %s: %w", l.lock.url, err)
	}
	attempts, stop := context.WithTimeout(ctx, l.lock.refreshInterval)
	defer stop()
	defer context.AfterFunc(l.ctx, stop)()

	began := l.lock.beginning()
	l.requests = 0
	pause := l.lock.retryPause()
	for n := 1; ; n++ {
		result, err := l.attempt(attempts)
		switch result {
		case attemptDone:
			l.tellRefresh(ctx, EventRefreshed, began, nil)
			return nil
		case attemptLost:
			return err
		case attemptEdited:
			if n == 1 {
				continue // at once; an editor that goes on editing is paced below
			}
		case attemptFailed:
			l.report(err, n == 1)
		}
		if result == attemptFailed && once || sleep(attempts, pause.next()) != nil {
			return l.failed(ctx, began, err)
		}
	}
}

// attempt sends one update, and reads back what its reply leaves open. The
// caller has the turn.
func (l *Lease) attempt(ctx context.Context) (attemptResult, error) {
	now := l.lock.clock.now()
	if err := l.Err(); err != nil {
		return attemptLost, err
	}
	// The id is chosen before the attempt, so that a read can tell whether it
	// landed.
	this := refreshAttempt{randomID(refreshBytes), now}

	l.mu.Lock()
	v, intact := l.version, l.intact
	left := l.left(now) // where there is no watchdog, nothing else ends the requests in time
	if len(l.pending) == maxPending {
		l.pending = l.pending[1:]
	}
	l.pending = append(l.pending, this)
	l.mu.Unlock()

	l.requests++
	r := l.lock.update(ctx, left, v, l.changes(intact, this))
	switch r.outcome {
	case done:
		return l.refreshed(r.object.version, now, true)
	case mismatch, absent:
		return l.readBack(ctx)
	case refused, permanent:
		l.forget(this)
	}
	return attemptFailed, r.err
}

// changes are the metadata that an attempt writes. What nobody can have changed
// under the version that the attempt is for need not be sent again.
func (l *Lease) changes(intact bool, this refreshAttempt) map[string]string {
	if !intact {
		return l.lock.newMetadata(l.own, this.id, this.sent)
	}
	md := make(map[string]string, 2)
	l.lock.stamp(md, this.id, this.sent)
	return md
}

// readBack tells what became of the object after a reply that proves nothing:
// an attempt whose reply was lost may be the reason for it.
func (l *Lease) readBack(ctx context.Context) (attemptResult, error) {
	ctx, cancel := context.WithTimeout(ctx, l.remaining(l.lock.clock.now()))
	defer cancel()
	l.requests++
	r := l.lock.read(ctx)
	if r.outcome != done && r.outcome != absent {
		return attemptFailed, r.err
	}
	if err := l.stillOurs(r); err != nil {
		return attemptLost, err
	}
	id := r.object.metadata[keyRefresh]
	l.mu.Lock()
	for _, p := range l.pending {
		if p.id == id {
			l.mu.Unlock()
			// Not intact: somebody may have edited what it left.
			return l.refreshed(r.object.version, p.sent, false)
		}
	}
	l.version, l.pending = r.object.version, nil
	l.intact = false
	l.mu.Unlock()
	l.lock.log(ctx, levelWarn, "the lock object was edited", l.token)
	return attemptEdited, errors.New("gcslock: refresh " + l.lock.url + ": its metadata were edited meanwhile")
}

// refreshed takes over what an attempt left that was sent at the reading,
// unless the validity ended first: a lease is never brought back to life. The
// version is taken over in any case, for the release.
func (l *Lease) refreshed(v version, sent reading, intact bool) (attemptResult, error) {
	now := l.lock.clock.now()
	l.mu.Lock()
	l.version = l.version.after(v)
	l.pending, l.intact = nil, intact
	over := l.err != nil || l.over(now) != nil
	if !over {
		l.sent = sent
		l.failures, l.failure = 0, nil
		l.wait = l.lock.nextRefresh()
	}
	l.mu.Unlock()
	if over {
		return attemptLost, l.Err()
	}
	l.lock.log(l.ctx, levelDebug, "lock refreshed", l.token, slog.Int64("metageneration", v.metageneration))
	return attemptDone, nil
}

// stillOurs ends the lease if the reply to a read, which is done or absent, shows
// that the object is ours no more, and returns the error that it ended with.
func (l *Lease) stillOurs(r reply) error {
	reason, why := "its object was deleted", ReasonDeleted
	if r.outcome == done {
		if r.object.metadata[keyNonce] == l.own.nonce {
			return nil
		}
		info := l.lock.info(r.object, l.lock.clock.now())
		reason, why = "its object was replaced, it is now held"+info.describe(), ReasonReplaced
	}
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	return l.lose(&lossError{l.lock.url, reason, nil, why})
}

// forget drops an attempt that was certainly not applied.
func (l *Lease) forget(attempt refreshAttempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.pending {
		if p.id == attempt.id {
			l.pending = append(l.pending[:i:i], l.pending[i+1:]...)
			return
		}
	}
}

// report keeps the failure of an attempt and logs it: as a warning if it is the
// first one of a refresh, or the first for want of a permission, which somebody
// may be able to mend before the validity ends.
func (l *Lease) report(err error, first bool) {
	l.mu.Lock()
	first = first || isDenied(err) && !isDenied(l.failure)
	l.failure = err
	ended := l.err != nil
	l.mu.Unlock()
	if ended {
		return // the attempt was cut short by a release
	}
	level := levelDebug
	if first {
		level = levelWarn
	}
	l.lock.log(l.ctx, level, "refresh failed, trying again", l.token, logError(err))
}

// failed counts a refresh that did not succeed in all its attempts. ctx is the
// caller's.
func (l *Lease) failed(ctx context.Context, began time.Time, last error) error {
	if err := l.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	l.failures++
	failures := l.failures
	l.mu.Unlock()
	l.tellRefresh(ctx, EventRefreshFailed, began, last)
	if l.lock.countFailures && failures > l.lock.maxFailures {
		return l.lose(&lossError{l.lock.url, fmt.Sprintf("%d refreshes failed in a row", failures), last, ReasonRefreshFailures})
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("gcslock: refresh: %w; last failure: %w", err, last)
	}
	return fmt.Errorf("gcslock: refresh: %w", last)
}
