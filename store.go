package gcslock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An outcome is all that the protocol may conclude from one request.
type outcome int

const (
	// done: the request was applied, and this is its own reply.
	done outcome = iota
	// mismatch: a precondition did not hold (412); for a create, the object
	// exists.
	mismatch
	// absent: the object does not exist (404).
	absent
	// refused: not now, and certainly not applied (429).
	refused
	// permanent: asking again in the same way will not help.
	permanent
	// unknown: the request may or may not have been applied, or may be yet.
	unknown
)

func (o outcome) String() string {
	return [...]string{"done", "mismatch", "absent", "refused", "permanent", "unknown"}[o]
}

// An operation is one of the four that the protocol is made of.
type operation string

const (
	opCreate operation = "create"
	opRead   operation = "read"
	opUpdate operation = "update"
	opDelete operation = "delete"

	opList operation = "list" // the command's, not the protocol's
)

// permission is the IAM permission that the operation needs
// (https://cloud.google.com/storage/docs/access-control/iam-json).
func (op operation) permission() string {
	switch op {
	case opCreate:
		return "storage.objects.create"
	case opUpdate:
		return "storage.objects.update"
	case opDelete:
		return "storage.objects.delete"
	case opList:
		return "storage.objects.list"
	}
	return "storage.objects.get"
}

// A version names one state of one life of the object. Neither number means
// anything alone: two different lock objects can both be at metageneration 1,
// and an object keeps its generation when its metadata change.
type version struct {
	generation, metageneration int64
}

// after is the version that a write under v left, by its own reply. A
// metageneration of 0 is what fake-gcs-server answers to an update; Cloud
// Storage never does. Keeping the number that was known lets a lock live on
// such a stand-in, and costs nothing elsewhere.
func (v version) after(reply version) version {
	if reply.metageneration == 0 {
		reply.metageneration = v.metageneration
	}
	return reply
}

// A stored is the lock object as a reply showed it.
type stored struct {
	version
	metadata map[string]string
	updated  time.Time // server's clock
}

// A reply is what came of one request.
type reply struct {
	outcome outcome
	object  stored    // of a done create, read or update
	date    time.Time // the server's clock, zero where the reply did not say
	err     error     // set unless done
}

// A store is one object of one bucket. Every call is one request and returns
// when that request's context ends at the latest. Implementations never retry:
// the protocol owns every attempt.
type store interface {
	// create makes the object if there is none.
	create(ctx context.Context, metadata map[string]string) reply
	read(ctx context.Context) reply
	// update merges metadata into the object if it still is at v.
	update(ctx context.Context, v version, metadata map[string]string) reply
	// remove deletes the object if it still is at v.
	remove(ctx context.Context, v version) reply
}

// A requestError is a request that was not done, told to the person who has to
// mend it.
type requestError struct {
	op     operation
	url    string
	hint   string // what to do, may be empty
	denied bool   // 401 or 403: new credentials or another binding can mend it
	err    error
}

func (e *requestError) Error() string {
	text := fmt.Sprintf("%s %s: %s", e.op, e.url, summary(e.err))
	if e.hint != "" {
		text += " (" + e.hint + ")"
	}
	return text
}

// Unwrap gives the client's error, but for a context's: that an attempt ran
// into its own limit must not look as if the caller's context had ended.
func (e *requestError) Unwrap() error {
	if errors.Is(e.err, context.DeadlineExceeded) || errors.Is(e.err, context.Canceled) {
		return nil
	}
	return e.err
}

// isDenied tells whether the request failed for want of a permission.
func isDenied(err error) bool {
	var request *requestError
	return errors.As(err, &request) && request.denied
}
