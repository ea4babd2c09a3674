package main

import (
	"errors"
	"maps"
	"time"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

// An object is the lock object as the simulated Cloud Storage has it.
type object struct {
	inside.Object
	creator *process
}

// foreign: nobody who knows the protocol wrote it.
func (o *object) foreign() bool {
	_, owner := o.Metadata["owner"]
	_, nonce := o.Metadata["nonce"]
	return !owner && !nonce
}

// A cloud is a Cloud Storage with one object name. The world's lock guards it.
type cloud struct {
	object      *object // nil: absent
	generation  int64
	changed     time.Time
	rateLimited bool
	dates       bool
	real        *realCloud // nil: this is all there is
}

var (
	errExists  = errors.New("HTTP 412: it exists")
	errVersion = errors.New("HTTP 412: another version")
	errAbsent  = errors.New("HTTP 404: no such object")
	errRate    = errors.New("HTTP 429: one change a second")
)

// refuse is a reply that nothing came of. Like the storage client's, it is the
// kind that tells the server's time.
func (c *cloud) refuse(outcome inside.Outcome, err error) inside.Reply {
	r := inside.Reply{Outcome: outcome, Err: err}
	if c.dates {
		r.Date = time.Now().Truncate(time.Second)
	}
	return r
}

// rateLimit is Cloud Storage's, of changes to one object.
const rateLimit = time.Second

// tooSoon tells whether a change comes within a second of the last.
func (c *cloud) tooSoon() bool {
	return c.rateLimited && time.Since(c.changed) < rateLimit
}

// put, edit and take are what people do with a console, whatever the version.

func (c *cloud) put(by *process, metadata map[string]string) {
	if c.real != nil {
		c.real.server.Put(bucketName, objectName, gcstest.Object{Metadata: metadata})
		c.mirror(by)
		return
	}
	c.create(by, metadata)
}

func (c *cloud) edit(metadata map[string]string) {
	if c.real != nil {
		c.real.server.Edit(bucketName, objectName, metadata)
		c.mirror(human)
		return
	}
	c.update(inside.Version{}, metadata)
}

func (c *cloud) take() {
	if c.real != nil {
		c.real.server.Delete(bucketName, objectName)
	}
	c.object = nil
}

func (c *cloud) create(by *process, metadata map[string]string) inside.Reply {
	switch {
	case c.object != nil:
		return c.refuse(inside.Mismatch, errExists)
	case c.tooSoon():
		return c.refuse(inside.Refused, errRate)
	}
	// Unique, and not increasing.
	c.generation++
	now := time.Now()
	c.object = &object{
		Object: inside.Object{
			Version:  inside.Version{Generation: 1000 + (c.generation ^ 0x5), Metageneration: 1},
			Metadata: maps.Clone(metadata),
			Updated:  now,
		},
		creator: by,
	}
	c.changed = now
	return inside.Reply{Object: c.object.Object}
}

func (c *cloud) read() inside.Reply {
	if c.object == nil {
		return c.refuse(inside.Absent, errAbsent)
	}
	return inside.Reply{Object: c.object.Object}
}

// matches checks a write's preconditions. A number that is zero is not asked
// about, as by clients that are not ours, and by our mutants.
func (c *cloud) matches(v inside.Version) bool {
	return (v.Generation == 0 || v.Generation == c.object.Generation) &&
		(v.Metageneration == 0 || v.Metageneration == c.object.Metageneration)
}

func (c *cloud) update(v inside.Version, metadata map[string]string) inside.Reply {
	switch {
	case c.object == nil:
		return c.refuse(inside.Absent, errAbsent)
	case !c.matches(v):
		return c.refuse(inside.Mismatch, errVersion)
	case c.tooSoon():
		return c.refuse(inside.Refused, errRate)
	}
	// A new map: replies share the old one.
	merged := maps.Clone(c.object.Metadata)
	if merged == nil {
		merged = make(map[string]string)
	}
	maps.Copy(merged, metadata)
	now := time.Now()
	c.object = &object{
		Object: inside.Object{
			Version:  inside.Version{Generation: c.object.Generation, Metageneration: c.object.Metageneration + 1},
			Metadata: merged,
			Updated:  now,
		},
		creator: c.object.creator,
	}
	c.changed = now
	return inside.Reply{Object: c.object.Object}
}

func (c *cloud) remove(v inside.Version) inside.Reply {
	switch {
	case c.object == nil || v.Generation != 0 && v.Generation != c.object.Generation:
		// The selector in the request finds no such generation.
		return c.refuse(inside.Absent, errAbsent)
	case !c.matches(v):
		return c.refuse(inside.Mismatch, errVersion)
	case c.tooSoon():
		return c.refuse(inside.Refused, errRate)
	}
	c.object, c.changed = nil, time.Now()
	return inside.Reply{}
}
