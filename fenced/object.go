package fenced

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

// The keys that the object's custom metadata get.
const (
	keyFence = "fence"       // of the last lease that claimed it, see fenceOf
	keyWrite = "fence-write" // id of the write that made the content
	keyEmpty = "fence-empty" // made by WithInitial, and not filled yet
)

// An Object is state in a Cloud Storage object, as the holder of one lease reads
// and writes it. It is safe for concurrent use: its requests are sent one after
// the other. It needs no closing.
type Object struct {
	settings
	lease   *gcslock.Lease
	handle  *storage.ObjectHandle
	url     string
	fence   string // see fenceOf
	session string // what the ids of this Object's writes begin with

	// turn is taken by whoever sends requests; it guards belief. A channel and
	// no mutex, because it is held across requests.
	turn chan struct{}
	belief
}

// A belief is what is known of the object on the server.
type belief struct {
	// base is the version to build on: what was left by our last claim or write
	// if claimed, else what was read. nil: absent.
	base *storage.ObjectAttrs
	// doubt: base may have been left behind. Look before anything else.
	doubt bool
	// claimed: base is a version that a claim or a write of this lease left.
	claimed bool
	// verified: the lock was the lease's after that claim was applied.
	verified bool
	// opened: it has been claimed and verified once. No earlier holder can have
	// written since, and other content is from outside.
	opened bool
	// claiming: a claim under base may have been applied, or may be yet.
	claiming bool
	// outside is how the object was changed by something that holds no lock,
	// if it was; that it holds none is still to be verified.
	outside string

	calls  int64 // writes that were called for so far, the number of the last
	done   int64 // the one whose content is in base; 0 if none of ours is
	unsure int64 // the one that may have been applied, or may be yet; 0 if none

	over error // ErrFenced or ErrConflict, and final: a *failure without an op
}

// An Option changes how [Open] opens an object.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	create      bool
	initial     []byte
	contentType string
}

// WithInitial has [Open] create the object with this content where it does not
// exist. The content is a fenced write like any other: what Open creates first is an
// empty object that counts as absent (see the package's comment), so that a process
// that was paused before the creation, and lost the lock, brings nothing into being.
func WithInitial(data []byte) Option {
	return optionFunc(func(s *settings) { s.create, s.initial = true, slices.Clone(data) })
}

// WithContentType is the content type of an object that [WithInitial] creates;
// the default is application/octet-stream. An object that exists keeps its own.
func WithContentType(contentType string) Option {
	return optionFunc(func(s *settings) { s.contentType = contentType })
}

// Open claims the object for the lease, and verifies that the lease still holds its
// lock. From then on no earlier holder can write it. [storage.ErrObjectNotExist] if
// there is no such object and no [WithInitial]; [ErrFenced] if the lock is no longer
// held. Requests that fail for now are sent again until ctx ends.
//
// Every Object of an object, in all processes, has to be opened under leases of the
// same lock. The lock object cannot be the state. Of two Objects for the same object
// under one lease each takes the other's writes for an outsider's.
//
// The handle is used with its client, user project and encryption key. It must have
// no generation and no conditions, and where it has a Retryer of its own, that is
// turned off for all copies of the handle: the storage client shares it among them.
func Open(ctx context.Context, lease *gcslock.Lease, obj *storage.ObjectHandle, opts ...Option) (*Object, error) {
	if lease == nil || obj == nil {
		return nil, errors.New("fenced: open: the lease or the object handle is nil")
	}
	o := &Object{
		lease: lease,
		// Once, because Retryer changes what copies of a handle share.
		handle:  obj.Retryer(storage.WithPolicy(storage.RetryNever)),
		url:     inside.URL(obj.BucketName(), obj.ObjectName()),
		fence:   fenceOf(lease),
		session: newSession(),
		turn:    make(chan struct{}, 1),
		belief:  belief{doubt: true},
	}
	o.settings = settings{contentType: "application/octet-stream"}
	for _, opt := range opts {
		opt.apply(&o.settings)
	}
	if err := o.do(ctx, operation{name: "open", request: o.found}); err != nil {
		return nil, err
	}
	if isEmpty(o.base) {
		if err := o.put(ctx, "open", 0, contentOf(o.initial)); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// found is the last step of Open, when the object is claimed and verified. An empty
// one is absent only now: before the claim an earlier holder could still fill it.
func (o *Object) found(context.Context) (inside.Outcome, error) {
	if isEmpty(o.base) && !o.create {
		return inside.Permanent, errMissing
	}
	return inside.Done, nil
}

var errMissing = fmt.Errorf("%w: create it, or use WithInitial", storage.ErrObjectNotExist)

func isEmpty(attrs *storage.ObjectAttrs) bool {
	_, empty := attrs.Metadata[keyEmpty]
	return empty
}

func newSession() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}

// fenceOf is the lease's token. Leases to which the lock was passed on have it, too: a
// claim that is found is the own one only if the sequence is.
func fenceOf(lease *gcslock.Lease) string {
	fence := strconv.FormatInt(lease.Token(), 10)
	if n := lease.Sequence(); n > 1 {
		fence += "." + strconv.Itoa(n)
	}
	return fence
}
