package gcslock

import (
	"context"
	"time"
)

// await waits until a lease is over that was won through the same Lock: no request
// tells more about it than is known here. It returns that lease's successor if the
// lock object was passed on, and else what comes next: the bucket says who holds
// the lock.
func (a *acquisition) await(ctx context.Context) (*Lease, step) {
	for lease := a.queue.current(); lease != nil; lease = a.queue.current() {
		a.locked, a.holder = true, lease.info()
		// Told before the offer is made: a panic of whoever is told would leave
		// an object to nobody.
		a.log(ctx, levelDebug, "locked by another", lease.token, logHolder(a.holder))
		a.meets(ctx, lease.token)
		if t, ok := a.inherit(ctx, lease); ok {
			return a.succeed(ctx, t), 0
		}
		if ctx.Err() != nil {
			return nil, stepAwait // run sees it
		}
	}
	a.locked = false
	a.outset = a.clock.now()
	d, met := a.past.courtesy(a.outset, a.maxWait)
	if d > 0 {
		_ = sleep(ctx, d) // the same
	}
	if met {
		// They are likely to be there, and a read is cheaper than a create.
		return nil, stepLook
	}
	return nil, a.first
}

// inherit waits for the end of a lease of the same Lock, and tells what was passed
// on to this acquisition. It ends with ctx, too, and with the lease's validity: the
// caller-driven form has no watchdog that would tell.
func (a *acquisition) inherit(ctx context.Context, lease *Lease) (tenure, bool) {
	heir := a.queue.offer(lease)
	if heir == nil {
		return tenure{}, false
	}
	validity := time.NewTimer(lease.remaining(a.clock.now()))
	defer validity.Stop()
	select {
	case t, ok := <-heir:
		return t, ok
	case <-ctx.Done():
	case <-validity.C:
		if lease.remaining(a.clock.now()) <= 0 {
			a.queue.over(lease)
		}
	}
	// What was passed on just then is ours, also if ctx has ended.
	return a.queue.withdraw(heir)
}

// offer has the lease's object passed on to the channel when the lease is released,
// or the channel closed when it is over in any other way. It is nil if that is past.
func (q *queue) offer(l *Lease) chan tenure {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lease != l {
		return nil
	}
	q.heir = make(chan tenure, 1)
	return q.heir
}

// withdraw takes the offer back, or what came of it.
func (q *queue) withdraw(heir chan tenure) (t tenure, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.heir == heir {
		q.heir = nil
		return tenure{}, false
	}
	t, ok = <-heir // answered or closed
	return t, ok
}

// pass gives the object of the lease to who has offered to take it, if anybody has.
func (q *queue) pass(l *Lease, t tenure, holder Info) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lease != l || q.heir == nil {
		return false
	}
	q.heir <- t // it has room for one
	q.lease, q.heir, q.holder = nil, nil, &holder
	return true
}

// info is what is known of this lease's object without asking, by the local clock.
func (l *Lease) info() Info {
	l.mu.Lock()
	obj := stored{version: l.version, metadata: l.lock.newMetadata(l.own, "", l.sent), updated: l.sent.wall}
	l.mu.Unlock()
	info := l.lock.info(obj, l.lock.clock.now())
	info.Stale = false // whatever the server's clock says to a local time
	return info
}
