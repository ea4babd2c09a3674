package gcslock

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// A step is what an acquisition does next.
type step int

const (
	stepCreate step = iota
	stepLook
	stepPauseAndLook
	stepPauseAndCreate
	stepAwait // a lease of the same Lock, see await
)

// An acquisition is one run for the lock, from the first create to a lease or
// an error. It belongs to one goroutine.
type acquisition struct {
	*Lock
	try   bool // one round only
	first step // where nothing is known of the object

	began    time.Time // for an observer, as the next two
	requests int       // how many were sent
	met      int64     // the generation that it was told of

	watch   watch
	pause   backoff
	pace    pace
	wake    time.Duration // look again after this at the latest; 0: no such time
	timed   sighting      // of a standby: when it last asked for the server's time
	retries map[operation]int

	tried      []string // nonces of all creates, see tries
	ours       []ownAttempt
	unresolved bool // one of ours may be there, and no read has told yet

	outset reading // when it last went to the bucket
	others company // whom it met there

	refusals   int   // creates in a row that were refused for coming too soon
	locked     bool  // the last that was heard: somebody holds it
	holder     Info  // who, where known
	collisions int   // creates that met an object, since one could be read
	deletes    int   // of what is in the way: since the last pause, and of a try in all
	last       error // the last failed request, nil once a read has succeeded
}

// acquire runs for the lock until it is won or ctx ends; with try for one
// round. The lease that it returns is not started.
func (l *Lock) acquire(ctx context.Context, try bool) (*Lease, error) {
	a := &acquisition{
		Lock: l, try: try, began: l.beginning(),
		watch:   watch{server: &l.server, ownTTL: l.ttl},
		pause:   backoff{random: l.random, shortest: l.minWait, longest: l.maxWait},
		pace:    pace{random: l.random, shortest: l.minWait, longest: l.maxWait},
		retries: make(map[operation]int),
	}
	if try {
		a.pause = l.retryPause()
	}
	if a.standsBy && !try {
		a.first = stepLook
	}
	defer a.ends()
	var lease *Lease
	var err error
	if try {
		lease, err = a.run(ctx, a.first)
	} else {
		lease, err = a.inTurn(ctx)
	}
	switch {
	case !a.observed():
	case err == nil:
		lease.telling.asked, lease.requests = a.began, a.requests
	default:
		a.tell(ctx, Event{Kind: EventAcquireFailed, Err: err})
	}
	return lease, err
}

// run goes from step to step.
func (a *acquisition) run(ctx context.Context, next step) (*Lease, error) {
	for {
		if ctx.Err() != nil {
			return nil, a.gaveUp(ctx, ctx.Err())
		}
		var lease *Lease
		var err error
		switch next {
		case stepCreate:
			lease, next, err = a.create(ctx)
		case stepLook:
			lease, next, err = a.look(ctx)
		case stepPauseAndCreate:
			next = stepCreate
			a.sleep(ctx)
		case stepPauseAndLook:
			next = stepLook
			a.sleep(ctx)
		case stepAwait:
			lease, next = a.await(ctx)
		}
		if lease != nil {
			lease, next, err = a.settle(ctx, lease)
		}
		if lease != nil {
			a.queue.won(lease)
		}
		if lease != nil || err != nil {
			return lease, err
		}
	}
}

// create sends one create, with a nonce of its own: two attempts with the same
// one could not be told apart afterwards.
func (a *acquisition) create(ctx context.Context) (*Lease, step, error) {
	if !a.try && a.space(ctx) != nil {
		return nil, stepCreate, nil // the loop sees that ctx ended
	}
	own := ownAttempt{nonce: randomID(nonceBytes), sent: a.clock.now()}
	a.tries(own.nonce)
	a.requests++
	r := a.Lock.create(ctx, a.newMetadata(own, randomID(refreshBytes), own.sent))
	if r.outcome != refused {
		a.refusals = 0
	}
	switch r.outcome {
	case done:
		return a.newLease(ctx, own, r.object.version), 0, nil
	case mismatch:
		// Remembered, too: a proxy or a transport of the caller's may have sent
		// it twice, and this is the second one's reply.
		a.remember(own)
		a.collisions++
		a.locked, a.holder = true, Info{Bucket: a.bucket, Object: a.object}
		return nil, stepLook, nil
	case unknown:
		a.remember(own)
		a.unresolved = true
		return a.retry(ctx, opCreate, r)
	case refused:
		return a.refusedCreate(ctx, r)
	}
	// absent: of a create, that can only mean the bucket.
	return nil, 0, fmt.Errorf("gcslock: acquire: %w", r.err)
}

// refusedCreate goes on after a create that came too soon after another change. The
// object was not there a moment ago, most likely, and a look would tell no more than
// the next create; but not for ever: on a bucket that is over its quota a read is
// cheaper.
func (a *acquisition) refusedCreate(ctx context.Context, r reply) (*Lease, step, error) {
	lease, next, err := a.retry(ctx, opCreate, r)
	if a.refusals++; a.refusals > mostRefusals {
		a.refusals = 0
	}
	if err == nil && a.refusals > 0 && !a.try {
		next = stepPauseAndCreate
	}
	return lease, next, err
}

// read and remove are those of the lock, counted.

func (a *acquisition) read(ctx context.Context) reply {
	a.requests++
	return a.Lock.read(ctx)
}

func (a *acquisition) remove(ctx context.Context, v version) reply {
	a.requests++
	return a.Lock.remove(ctx, v)
}

// look reads the object and decides.
func (a *acquisition) look(ctx context.Context) (*Lease, step, error) {
	r := a.read(ctx)
	at := a.clock.now()
	switch r.outcome {
	case done:
		a.unresolved, a.last = false, nil
		return a.meet(ctx, r.object, at)
	case absent:
		return a.vanished()
	case refused, unknown:
		return a.retry(ctx, opRead, r)
	}
	return nil, 0, fmt.Errorf("gcslock: acquire: %w", r.err)
}

// vanished: the object that was in the way is gone, so create again at once.
// Only if that keeps happening is it a race that a pause calms, or a server
// that contradicts itself.
func (a *acquisition) vanished() (*Lease, step, error) {
	a.unresolved, a.locked, a.last, a.wake = false, false, nil, 0
	if !a.try {
		a.queue.meets(nil)
	}
	switch {
	case a.collisions <= 1:
		return nil, stepCreate, nil
	case a.try && a.collisions >= tryAttempts:
		return nil, 0, &HeldError{Holder: a.holder}
	}
	return nil, stepPauseAndCreate, nil
}

// meet decides what to do about an object that a read showed.
func (a *acquisition) meet(ctx context.Context, obj stored, at reading) (*Lease, step, error) {
	if own, ok := a.recognise(obj); ok {
		// The reply to that attempt was lost. Validity counts from before it
		// was sent, not from this read.
		return a.newLease(ctx, own, obj.version), 0, nil
	}
	a.collisions = 0
	a.watch.see(obj, at)
	a.locked, a.holder = true, a.info(obj, at)
	if !a.try && a.queue.owns(obj) {
		return nil, stepAwait, nil // a TryAcquire was faster
	}
	verdict := a.watch.judge(at)
	if a.reclaims(obj) {
		verdict.stale, verdict.reason, verdict.why = true, "it carries our own owner label", ReasonReclaimed
	}
	if verdict.stale {
		return a.takeOver(ctx, obj, verdict)
	}
	if !a.try {
		a.others.meet(&a.holder)
		a.queue.meets(&a.holder)
	}
	a.log(ctx, levelDebug, "locked by another", obj.generation, logHolder(a.holder))
	a.meets(ctx, obj.generation)
	if a.try {
		return nil, 0, &HeldError{Holder: a.holder}
	}
	a.wake = verdict.wait
	if a.standsBy && a.needsTime(at) {
		return nil, stepCreate, nil
	}
	return nil, stepPauseAndLook, nil
}

// needsTime tells whether a standby should send a create that is going to fail:
// successful reads do not tell the server's time, and watching counts from the
// first look at the holder's last refresh, which may be a long pause late. Once,
// when half of the ttl has gone by: a refresher that reaches storage writes
// earlier, see checkTimes. Until then it wakes the standby up at that time.
func (a *acquisition) needsTime(at reading) bool {
	if a.wake <= 0 || a.timed == a.watch.seen || !a.watch.serverNow(at).IsZero() {
		return false
	}
	if left := a.watch.ttl()/2 - at.watchedSince(a.watch.since); left > 0 {
		a.wake = min(a.wake, left)
		return false
	}
	a.timed = a.watch.seen
	return true
}

// takeOver deletes exactly the version that was judged. On a server where the
// object is there all the same, or a cached read shows what is gone, it is done
// again after a pause, and by a try not for ever.
func (a *acquisition) takeOver(ctx context.Context, obj stored, v verdict) (*Lease, step, error) {
	create, look := stepCreate, stepLook
	if a.deletes++; a.deletes > 1 {
		create, look = stepPauseAndCreate, stepPauseAndLook
	}
	if a.try && a.deletes > tryAttempts {
		return nil, 0, &HeldError{Holder: a.holder}
	}
	a.wake = 0
	r := a.remove(ctx, obj.version)
	switch r.outcome {
	case done:
		a.log(ctx, levelWarn, "took over a stale lock", obj.generation,
			logHolder(a.holder), slog.String("reason", v.reason))
		if a.observed() {
			a.tell(ctx, Event{Kind: EventTakenOver, Reason: v.why})
		}
		a.locked = false
		return nil, create, nil
	case absent:
		a.locked = false
		return nil, create, nil
	case mismatch:
		return nil, look, nil // refreshed after all, or replaced
	case refused, unknown:
		return a.retry(ctx, opDelete, r)
	}
	return nil, 0, fmt.Errorf("gcslock: take over %s, stale (%s)%s: %w", a.url, v.reason, a.holder.describe(), r.err)
}

// retry is what follows a request that failed for now: a pause, and a read,
// which is cheap and tells what became of it.
func (a *acquisition) retry(ctx context.Context, op operation, r reply) (*Lease, step, error) {
	if ctx.Err() != nil {
		// The end of the wait cut it off, which tells nothing of the storage.
		// What came before does.
		if a.last == nil && !a.locked {
			a.last = r.err
		}
		return nil, stepPauseAndLook, nil
	}
	a.last = r.err
	a.retries[op]++
	level := levelWarn
	if r.outcome == refused {
		level = levelDebug // contention
	}
	a.log(ctx, level, "request failed, trying again", 0, logError(r.err))
	if a.try && a.retries[op] >= tryAttempts {
		return nil, 0, a.gaveUp(ctx, ctx.Err())
	}
	return nil, stepPauseAndLook, nil
}

// settle returns the lease if it is fit to be handed out. One whose validity is
// used up or nearly so, after a slow or lost reply, is refreshed first; if that
// fails, its version is deleted and the run goes on.
func (a *acquisition) settle(ctx context.Context, lease *Lease) (*Lease, step, error) {
	fit := func() bool { return lease.remaining(a.clock.now()) >= a.refreshInterval }
	if fit() {
		return lease, 0, nil
	}
	if lease.remaining(a.clock.now()) > 0 {
		outcome, _ := lease.attempt(ctx)
		a.requests += lease.requests
		if outcome == attemptDone && fit() {
			return lease, 0, nil
		}
	}
	r := a.remove(ctx, lease.lastVersion())
	switch r.outcome {
	case done, absent:
	case permanent:
		return nil, 0, fmt.Errorf("gcslock: acquire: %w", r.err)
	default:
		a.remember(lease.own)
		a.unresolved = true
		return a.retry(ctx, opDelete, r)
	}
	if a.deletes++; a.try && a.deletes >= tryAttempts {
		return nil, 0, fmt.Errorf("gcslock: acquire %s: replies come too late for a ttl of %v", a.url, a.ttl)
	}
	return nil, stepCreate, nil
}

// gaveUp cleans up and tells why there is no lease.
func (a *acquisition) gaveUp(ctx context.Context, ended error) error {
	if a.unresolved {
		a.cleanUp(ctx)
	}
	switch {
	case a.locked:
		return &HeldError{Holder: a.holder, ended: ended, last: a.last}
	case ended == nil:
		return fmt.Errorf("gcslock: acquire: %w", a.last)
	case a.last == nil:
		return fmt.Errorf("gcslock: acquire %s: %w", a.url, ended)
	}
	return fmt.Errorf("gcslock: acquire: %w; last failure: %w", ended, a.last)
}
