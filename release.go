package gcslock

import (
	"context"
	"errors"
	"time"
)

// releaseLimit bounds a release in all.
const releaseLimit = 15 * time.Second

// Release gives the lock up, so that others get it at once. Stop the work
// first: the lease's context is cancelled, any refresh under way is waited for,
// and then the lock object is deleted, in one write request and more where
// requests fail for now. It is tried for up to 15 s also when ctx has ended:
// only ctx's values count.
//
// With [WithLocalHandoff] the object may be passed on instead, without a request.
//
// The error is nil if the object is gone by our hand or was passed on, [ErrLockAbandoned] if the
// lease had been lost before, and else says why the object may still be there
// and until when others will wait. Later calls wait for the first one and
// return its result. Another holder's object is never deleted.
//
// After a loss Release still tries once to delete the object, so that others
// need not wait, and returns ErrLockAbandoned whatever came of it.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	first := !l.releasing
	l.releasing = true
	l.mu.Unlock()
	if !first {
		<-l.released
		return l.releaseErr
	}
	defer close(l.released)
	defer l.lock.queue.over(l) // after a panic of who observes, too
	l.releaseErr = l.release(ctx)
	return l.releaseErr
}

func (l *Lease) release(ctx context.Context) error {
	lost := l.Err() // the time may be up and no timer have told yet
	if lost == nil {
		if err, first := l.end(&endedError{l.lock.url}); !first {
			lost = err
		}
	}
	// It has ended, so that no refresher is started any more.
	l.refresher.Wait()
	l.turn <- struct{}{} // and not given back: no request follows the delete

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	if lost == nil {
		l.requests = 0
		var err error
		if !l.passOn(ctx) {
			err = l.giveUp(ctx)
		}
		l.tellEnd(ctx, err, l.requests)
		return err
	}
	l.mu.Lock()
	gone, v := l.gone, l.version
	l.mu.Unlock()
	if !gone {
		l.lock.remove(ctx, v)
	}
	return lost
}

// giveUp deletes the object, and lets those go on who wait for that in this process.
func (l *Lease) giveUp(ctx context.Context) error {
	l.mu.Lock()
	began := l.began
	l.mu.Unlock()
	held := l.lock.clock.now().watchedSince(began)
	err := l.deleteObject(ctx)
	l.lock.past.release(l.lock.clock.now(), held)
	l.lock.queue.over(l)
	return err
}

// deleteObject deletes the object of a lease that was held to the end.
func (l *Lease) deleteObject(ctx context.Context) error {
	v := l.lastVersion()
	asked := false  // a delete of ours may have been applied
	edited := false // by somebody else, or by a refresh that landed after all
	pause := l.lock.retryPause()
	for {
		_ = l.lock.space(ctx) // no longer than a second
		l.requests++
		r := l.lock.remove(ctx, v)
		if r.outcome == mismatch {
			// An edit by hand, or a refresh that landed after all, or a
			// successor.
			l.requests++
			r = l.lock.read(ctx)
			switch {
			case r.outcome != done:
			case r.object.metadata[keyNonce] != l.own.nonce:
				r.outcome = absent // ours is
			default:
				v = r.object.version
				if !edited {
					edited = true
					continue
				}
				r.outcome, r.err = refused, errEdited // at every turn: with pauses
			}
		} else if r.outcome == unknown {
			asked = true
		}
		switch r.outcome {
		case done:
			l.lock.log(ctx, levelInfo, "lock released", l.token)
			return nil
		case absent:
			return l.missing(ctx, asked)
		case permanent:
			return &releaseError{l.lock.url, l.heldUntil(), r.err}
		}
		l.lock.log(ctx, levelWarn, "release failed, trying again", l.token, logError(r.err))
		if sleep(ctx, pause.next()) != nil {
			return &releaseError{l.lock.url, l.heldUntil(), r.err}
		}
	}
}

var errEdited = errors.New("the lock object changes again and again")

// missing is the result of a release that found no object of ours. After a
// delete whose reply was lost that is what the delete did.
func (l *Lease) missing(ctx context.Context, asked bool) error {
	if asked {
		l.lock.log(ctx, levelInfo, "lock released", l.token)
		return nil
	}
	loss := &lossError{l.lock.url, "its object was deleted or replaced before the release", nil, ReasonDeleted}
	l.mu.Lock()
	l.err = loss
	l.mu.Unlock()
	l.lock.log(ctx, levelWarn, "lock lost", l.token, logError(loss))
	return loss
}

// heldUntil is about when others will take over if the object stays: the ttl
// after the last write that may have landed, and what a waiter adds to it for
// the server's clocks and for the whole seconds of a Date.
func (l *Lease) heldUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.sent
	if n := len(l.pending); n > 0 {
		last = l.pending[n-1].sent
	}
	return last.wall.Add(l.lock.ttl + serverSlack + time.Second)
}
