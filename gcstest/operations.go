package gcstest

import (
	"fmt"
	"net/http"
	"time"
)

func (c *call) key() objectKey { return objectKey{c.bucket, c.object} }

func (s *Server) read(c *call) *reply {
	v := s.history(c.key()).target(c)
	if v == nil {
		return objectMissing(c.key())
	}
	if no := c.conditions.check(v, true); no != nil {
		return no
	}
	rep := s.forward(c)
	s.correct(c, rep)
	if rep.header.Get("X-Goog-Generation") != "" {
		rep.header.Set("X-Goog-Metageneration", fmt.Sprint(v.metageneration))
	}
	return rep
}

// create serves every request that makes an object at once.
func (s *Server) create(c *call, now time.Time) *reply {
	if no := s.mayCreate(c, now); no != nil {
		return no
	}
	if no := s.limit(c.key()); no != nil {
		return no
	}
	rep := s.forward(c)
	if !rep.ok() {
		return rep
	}
	s.finish(c, rep, now)
	return rep
}

// mayCreate is what has to hold both when an upload starts and when it ends.
func (s *Server) mayCreate(c *call, now time.Time) *reply {
	live := s.history(c.key()).live
	if no := c.conditions.check(live, false); no != nil {
		return no
	}
	if no := tooMuch(c.uploaded.metadata()); no != nil {
		return no
	}
	return s.protected(c.key(), live, now)
}

// finish takes over what the fake has created, and replies with it.
func (s *Server) finish(c *call, rep *reply, now time.Time) {
	key := c.key()
	s.adopt(key, now)
	h := s.history(key)
	c.uploaded.hold(h.live)
	h.changed = time.Now()
	s.describe(c, rep, h.live)
}

func (s *Server) update(c *call, now time.Time) *reply {
	key := c.key()
	h := s.history(key)
	v := h.target(c)
	if v == nil {
		return objectMissing(key)
	}
	if no := c.conditions.check(v, false); no != nil {
		return no
	}
	change, err := decodeResource(c.body)
	if err != nil {
		return invalid("Parse Error: " + err.Error())
	}
	old := s.load(key, v)
	metadata := change.merge(old.Metadata, c.method == http.MethodPut)
	if no := tooMuch(metadata); no != nil {
		return no
	}
	if no := s.limit(key); no != nil {
		return no
	}
	obj, rep := s.patch(c, old)
	if !rep.ok() {
		return rep
	}
	obj.Metadata = metadata
	v.touch(now)
	change.hold(v)
	s.store(obj, v)
	h.changed = time.Now()
	s.describe(c, rep, v)
	return rep
}

// remove deletes the selected version for good, or makes the live one
// noncurrent where the bucket keeps versions.
func (s *Server) remove(c *call, now time.Time) *reply {
	key := c.key()
	h := s.history(key)
	v := h.target(c)
	if v == nil {
		return objectMissing(key)
	}
	if no := c.conditions.check(v, false); no != nil {
		return no
	}
	if no := s.protected(key, v, now); no != nil {
		return no
	}
	if no := s.limit(key); no != nil {
		return no
	}
	if rep := s.forward(c); !rep.ok() {
		return rep
	}
	if c.selected {
		h.forget(v)
	} else {
		h.retire(s.versioned(key.bucket), now)
	}
	h.changed = time.Now()
	// The fake answers 200 with a body, which some clients choke on.
	return &reply{status: http.StatusNoContent, header: http.Header{}}
}

// pass hands the request to the fake as it is.
func (s *Server) pass(c *call, now time.Time) *reply {
	rep := s.forward(c)
	if !rep.ok() || c.method == http.MethodOptions {
		return rep
	}
	switch {
	case c.reads():
		s.correct(c, rep)
	case c.object != "": // access control, which is metadata
		if h := s.history(c.key()); h.live != nil {
			h.live.touch(now)
			s.store(s.load(c.key(), h.live), h.live)
		}
	case c.method == http.MethodDelete && c.bucket != "":
		s.forgetBucket(c.bucket)
	}
	return rep
}
