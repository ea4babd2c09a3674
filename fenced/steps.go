package fenced

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

// An operation is what a call is about. Its request is sent when the object is
// claimed and verified, and it is done when that is, or, if it is a write, when a
// look shows that the request was applied.
type operation struct {
	name    string
	call    int64 // the number of a write
	request func(context.Context) (inside.Outcome, error)
}

// take waits for the turn.
func (o *Object) take(ctx context.Context, name string) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return o.failed(operation{name: name}, endOf(ctx, nil))
	}
}

func (o *Object) give() { <-o.turn }

// do goes on, one request after the other, until the operation is done or cannot
// be. The caller has the turn.
func (o *Object) do(ctx context.Context, op operation) error {
	var last error
	pause := backoff{}
	contradicted := false
	for {
		if op.call != 0 && o.done == op.call {
			return nil
		}
		if o.over == nil && o.lease.Err() != nil {
			o.over = &failure{kind: ErrFenced, cause: o.lease.Err()}
			if op.call != 0 && o.doubt && ctx.Err() == nil {
				// One look more does no harm, and may tell what became of the write.
				_, _ = o.look(ctx)
				continue
			}
		}
		if o.over != nil {
			return o.failed(op, o.over)
		}
		if ctx.Err() != nil {
			return o.failed(op, endOf(ctx, last))
		}
		final := o.ready()
		outcome, err := o.next(ctx, op)
		switch {
		case outcome == inside.Done && final:
			return nil
		case outcome == inside.Done:
			continue
		case outcome == inside.Permanent:
			return o.failed(op, err)
		case (outcome == inside.Mismatch || outcome == inside.Absent) && !contradicted:
			contradicted = true // look at once; a server that goes on like that is paced
			continue
		}
		last = err
		o.rest(ctx, pause.next())
	}
}

// ready tells whether the operation's own request comes next.
func (o *Object) ready() bool { return !o.doubt && o.outside == "" && o.claimed && o.verified }

// next is the next step: look, claim, verify, and then the request.
func (o *Object) next(ctx context.Context, op operation) (inside.Outcome, error) {
	switch {
	case o.doubt:
		return o.look(ctx)
	case o.outside != "":
		return o.verify(ctx)
	case o.base == nil:
		return o.make(ctx)
	case !o.claimed:
		return o.claim(ctx)
	case !o.verified:
		return o.verify(ctx)
	}
	return op.request(ctx)
}

// look reads what the object is now.
func (o *Object) look(ctx context.Context) (inside.Outcome, error) {
	attrs, outcome, err := o.attrs(ctx)
	if outcome != inside.Done && outcome != inside.Absent {
		return outcome, err
	}
	o.doubt = false
	o.learn(attrs)
	return inside.Done, nil
}

// learn takes over what a look has shown; nil is an absent object.
func (o *Object) learn(now *storage.ObjectAttrs) {
	if sameVersion(o.base, now) {
		return // what is open may be applied yet
	}
	// Nothing that was sent under base can be applied from now on.
	landed := o.landed(now)
	switch {
	case landed != 0:
		o.done, o.unsure = landed, 0
	case !o.opened:
	case now != nil && now.Generation == o.base.Generation:
		// A late claim of an earlier holder, or an edit of the metadata. The
		// content is what it was, and no write of ours was applied.
		o.unsure = 0
	default:
		o.outside = describe(now)
		return
	}
	// What is exactly as our write left it needs no new claim. Anything else
	// does: nothing is built on a version that somebody else made. What was
	// verified of the earlier claim says nothing about the next one.
	left := landed != 0 && now.Metageneration == 1
	claimed := o.claiming && now != nil && now.Metadata[keyFence] == o.fence
	o.base, o.claimed, o.verified, o.claiming = now, left || claimed, left, false
}

// landed is the number of the write of ours, not known to be done, that made the
// content; 0 if none did.
func (o *Object) landed(now *storage.ObjectAttrs) int64 {
	if now == nil {
		return 0
	}
	session, number, _ := strings.Cut(now.Metadata[keyWrite], ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if session != o.session || err != nil || n <= o.done {
		// One that is known to be done, under another version: somebody has
		// copied it there, metadata and all.
		return 0
	}
	return n
}

// writeID is what a write is known by in the metadata.
func (o *Object) writeID(call int64) string { return fmt.Sprintf("%s.%d", o.session, call) }

// claim gives the object a new metageneration. Every write that is under way with
// an older one fails from then on.
func (o *Object) claim(ctx context.Context) (inside.Outcome, error) {
	if o.base.ContentEncoding == "gzip" {
		// The storage client can't ask for the bytes as they are where it reads
		// through the JSON API.
		return inside.Permanent, errGzip
	}
	attrs, outcome, err := o.patch(ctx, o.base)
	switch outcome {
	case inside.Done:
		o.base, o.claimed, o.claiming = attrs, true, false
	case inside.Mismatch, inside.Absent, inside.Unknown:
		o.doubt, o.claiming = true, true // a 412 may be the reply to a request sent twice
	}
	return outcome, err
}

// make creates the empty object, which is a claim, too.
func (o *Object) make(ctx context.Context) (inside.Outcome, error) {
	if !o.create {
		return inside.Permanent, errMissing
	}
	attrs, outcome, err := o.createEmpty(ctx)
	switch outcome {
	case inside.Done:
		o.base, o.claimed, o.claiming = attrs, true, false
	case inside.Mismatch, inside.Unknown:
		o.doubt, o.claiming = true, true
	}
	return outcome, err
}

// verify asks the lock's object, after the claim or the look that showed a change.
// What it answers was true after that: the order is what the argument rests on.
func (o *Object) verify(ctx context.Context) (inside.Outcome, error) {
	err := o.lease.Verify(ctx)
	switch {
	case errors.Is(err, gcslock.ErrLockAbandoned), errors.Is(err, gcslock.ErrNotHeld):
		o.over = &failure{kind: ErrFenced, cause: err}
	case err != nil:
		if outcome, _ := inside.Failed("read", "", err); outcome == inside.Permanent {
			return outcome, err
		}
		return inside.Unknown, err
	case o.outside != "":
		o.over = &failure{kind: ErrConflict, detail: o.outside}
	default:
		o.verified, o.opened = true, true
	}
	return inside.Done, nil
}

// failed is the error of a call.
func (o *Object) failed(op operation, err error) error {
	f := &failure{cause: err}
	var final *failure
	if errors.As(err, &final) {
		*f = *final
	}
	f.op, f.url, f.uncertain = op.name, o.url, op.call != 0 && o.unsure == op.call
	return f
}

func sameVersion(a, b *storage.ObjectAttrs) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Generation == b.Generation && a.Metageneration == b.Metageneration
}

// describe is how the object was changed.
func describe(now *storage.ObjectAttrs) string {
	if now == nil {
		return "was deleted"
	}
	return fmt.Sprintf("was replaced (generation %d, updated %s)", now.Generation, now.Updated.UTC().Format(time.RFC3339))
}

// A backoff gives pauses up to the second that Cloud Storage asks for between two
// changes of one object, with jitter.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, 100*time.Millisecond), time.Second)
	return b.last/2 + time.Duration(rand.Int64N(int64(b.last)))/2
}

// rest pauses, but not past the end of ctx or of the lease.
func (o *Object) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-o.lease.Context().Done():
	}
}
