package gcstest

import (
	"slices"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

type objectKey struct{ bucket, object string }

// version is what the fake does not keep of an object's version.
type version struct {
	generation, metageneration int64
	created, updated           time.Time
	deleted                    time.Time // when it became noncurrent
	temporaryHold, eventHold   bool
}

// history is all that was ever under one name. It outlives the object, for the
// rate limit's sake.
type history struct {
	live       *version
	noncurrent []*version // oldest first
	changed    time.Time  // last change that the rate limit counts
}

// history is an empty one, that nobody keeps, for a name that was never used.
func (s *Server) history(key objectKey) *history {
	if h := s.objects[key]; h != nil {
		return h
	}
	return &history{}
}

// find returns the version with that generation, current or not, or nil.
func (h *history) find(generation int64) *version {
	if h.live != nil && h.live.generation == generation {
		return h.live
	}
	for _, v := range h.noncurrent {
		if v.generation == generation {
			return v
		}
	}
	return nil
}

// target returns the version that a request is about: the selected one, else
// the live one. nil if there is none.
func (h *history) target(c *call) *version {
	if c.selected {
		return h.find(c.generation)
	}
	return h.live
}

// retire makes the live version noncurrent, or forgets it.
func (h *history) retire(versioned bool, now time.Time) {
	if versioned {
		h.live.deleted = now
		h.noncurrent = append(h.noncurrent, h.live)
	}
	h.live = nil
}

func (h *history) forget(v *version) {
	if h.live == v {
		h.live = nil
	}
	h.noncurrent = slices.DeleteFunc(h.noncurrent, func(o *version) bool { return o == v })
}

// touch records a change of the metadata. updated moves on even if the clock
// stands still, as virtual time does. It follows a clock that is set back, but
// not for less than a second: those are the microseconds that it is ahead by.
func (v *version) touch(now time.Time) {
	v.metageneration++
	if ahead := v.updated.Sub(now); ahead >= 0 && ahead < time.Second {
		now = v.updated.Add(time.Microsecond)
	}
	v.updated = now
}

// nextGeneration returns a number that was not used before, and that is as
// often smaller than the last as larger: multiples of an odd number, modulo a
// power of two, repeat only after all the others. They look like Cloud
// Storage's, microseconds since 1970, and are of a week in 2020 that neither
// the fake's own, taken from the clock, nor a bubble's, in 2000, meet.
func (s *Server) nextGeneration() int64 {
	const epoch, odd, mask = 1_600_000_000_000_000, 0x9E3779B97F, 1<<40 - 1
	s.made++
	return epoch + int64(s.made*odd&mask)
}

// adopt gives the object that the fake has just stored a generation of ours.
// The fake takes its own from the clock, so that two creates at the same
// instant, which in a synctest bubble is every two, have the same. Nothing
// happens if the fake stored none.
func (s *Server) adopt(key objectKey, now time.Time) {
	h := s.history(key)
	obj, err := s.fake.GetObject(key.bucket, key.object)
	if err != nil || h.live != nil && obj.Generation == h.live.generation {
		return
	}
	if err := s.fake.Backend().DeleteObjectWithGeneration(key.bucket, key.object, obj.Generation); err != nil {
		panic("gcstest: " + err.Error()) // it was there a line ago, and we hold the lock
	}
	if h.live != nil {
		h.retire(s.versioned(key.bucket), now)
	}
	h.live = &version{generation: s.nextGeneration(), metageneration: 1, created: now, updated: now}
	s.objects[key] = h
	s.store(obj, h.live)
}

// store puts the object into the fake under the version's generation. Where the
// fake has that generation already, it is replaced, current or noncurrent.
func (s *Server) store(obj fakestorage.Object, v *version) {
	obj.Generation, obj.Created, obj.Updated, obj.Deleted = v.generation, v.created, v.updated, v.deleted
	s.fake.CreateObject(obj)
}

// load returns what the fake keeps of a version.
func (s *Server) load(key objectKey, v *version) fakestorage.Object {
	obj, err := s.fake.GetObjectWithGeneration(key.bucket, key.object, v.generation)
	if err != nil {
		panic("gcstest: " + err.Error()) // we and the fake no longer agree
	}
	return obj
}
