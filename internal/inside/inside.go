// Package inside lets the module's other packages and its commands reach below
// the public names of packages gcslock and gcstest. It gives a lock a store, clocks
// and a source of chance of the simulator's making, a server a file for its
// objects, and package fenced the outcomes that gcslock makes of the storage
// client's errors. The types mirror those of store.go and clock.go, which stay
// unexported, because a wrong clock or store is a broken lock and no option.
package inside

import (
	"context"
	"time"
)

// An Outcome is all that the protocol may conclude from one request.
type Outcome int

// The outcomes, see docs/protocol.md.
const (
	Done Outcome = iota
	Mismatch
	Absent
	Refused
	Permanent
	Unknown
)

// A Version names one state of one life of the object.
type Version struct{ Generation, Metageneration int64 }

// An Object is the lock object as a reply showed it.
type Object struct {
	Version
	Metadata map[string]string
	Updated  time.Time
}

// A Reply is what came of one request.
type Reply struct {
	Outcome Outcome
	Object  Object
	Date    time.Time // zero where the reply did not say
	Err     error     // set unless done
	Denied  bool      // for want of a permission
}

// A Store is one object of one bucket, see store in package gcslock.
type Store interface {
	Create(ctx context.Context, metadata map[string]string) Reply
	Read(ctx context.Context) Reply
	Update(ctx context.Context, v Version, metadata map[string]string) Reply
	Remove(ctx context.Context, v Version) Reply
}

// A Reading is one look at a machine's clocks, see reading in package gcslock.
type Reading struct {
	Mono, Awake time.Duration
	Wall        time.Time
}

// Seams are what a simulated lock runs on.
type Seams struct {
	Store Store // nil: the storage client
	Now   func() Reading
	// Random is from 0 to below n.
	Random func(n time.Duration) time.Duration
}

// Set by package gcslock, whose types this package can't name.
var (
	// Replace is func(*gcslock.Lock, Seams). It must precede the lock's first
	// use.
	Replace any
	// Valid is func(*gcslock.Lease, Reading) bool: what Err would say at the
	// reading, without its consequences.
	Valid any
	// Current is func(*gcslock.Lock) *gcslock.Lease: what the caller-driven form
	// holds or has lost.
	Current any
	// Crash is func(*gcslock.Lease, error): it ends what runs for the lease,
	// and sends nothing.
	Crash any
)

// What package gcslock knows of requests, set by it.
var (
	// Failed is the outcome that a request's error stands for, and the error in
	// words for the person who has to mend it. op is create, read, update or
	// delete, as in store.go; url is for the words.
	Failed func(op, url string, err error) (Outcome, error)
	// URL is how people name an object, safe to print.
	URL func(bucket, object string) string
	// Printable makes a stranger's text safe for a terminal.
	Printable func(text string) string
	// Summary is a request's error on one line, safe to print, in the server's
	// own words where it gave any.
	Summary func(err error) string
)

// KeepIn is set by package gcstest: func(*gcstest.Server, string) error. It has
// the server go on with the objects in the file, and keep them there from then
// on.
var KeepIn any
