package gcstest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// Server is a strict Cloud Storage in memory. Make one with New. It starts no
// goroutine and opens no socket, and needs no closing. All its methods are safe
// for concurrent use.
type Server struct {
	clock atomic.Pointer[func() time.Time]
	log   requestLog
	plan  faultPlan

	// mu guards everything below, and both fakes. It is held for the short
	// piece of work in memory that applies one request, and never while a
	// fault waits: in a synctest bubble a goroutine that waits for a mutex does
	// not count as blocked, so that time would stand still.
	//
	// One mutex for all objects, because the fake's memory backend is not safe
	// for concurrent use even across objects of one bucket: its reads append to
	// a slice that is shared with its writes.
	mu sync.Mutex
	// fake parses and serves the requests, and holds contents and metadata. Its
	// generations are ours: see adopt.
	fake *fakestorage.Server
	// bench is where a metadata update is worked out, on a copy: see patch.
	bench     *fakestorage.Server
	objects   map[objectKey]*history
	retention map[string]time.Duration
	uploads   map[string]upload
	made      uint64
	perObject time.Duration
	keep      func() // see keepIn; nil: nothing is kept
}

// New returns a server with the given buckets, which keep no old versions and
// have no retention policy. Use CreateBucket for others.
func New(buckets ...string) *Server {
	s := &Server{
		fake:      newFake(),
		bench:     newFake(),
		objects:   map[objectKey]*history{},
		retention: map[string]time.Duration{},
		uploads:   map[string]upload{},
	}
	s.SetClock(nil)
	for _, name := range buckets {
		s.CreateBucket(name)
	}
	return s
}

func newFake() *fakestorage.Server {
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		panic("gcstest: " + err.Error()) // without a listener, a seed or a directory nothing can fail
	}
	return fake
}

// SetClock sets the server's clock: what Date, timeCreated and updated are
// taken from, and the age that a retention policy goes by. It may run at any
// speed, and back. nil is time.Now, which is the default. now is called with
// the server locked: it must not call the server.
func (s *Server) SetClock(now func() time.Time) {
	if now == nil {
		now = time.Now
	}
	s.clock.Store(&now)
}

// now is the server's time, with the microseconds that it sends.
func (s *Server) now() time.Time {
	return (*s.clock.Load())().UTC().Truncate(time.Microsecond)
}

// exchange is one request and its reply, which both the transport and the
// listener carry. An error means that there is no reply: the connection is cut,
// or the request's context has ended.
func (s *Server) exchange(r *http.Request) (*reply, error) {
	c, err := receive(r)
	if err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err // such a request does not leave the client, and is not logged
	}
	entry := s.log.add(c, s.now())
	send := func() *reply {
		rep := s.apply(c)
		s.log.applied(entry, rep.status)
		return rep
	}
	rep, err := s.faulty(r.Context(), c, send)
	if err != nil {
		s.log.lost(entry)
		return nil, err
	}
	if rep.header.Get("Date") == "" {
		rep.date(s.now())
	}
	s.log.replied(entry, rep.status)
	if rep.cut {
		s.log.lost(entry)
	}
	return rep, nil
}

// faulty sends the request through the fault that waits for it, if any.
func (s *Server) faulty(ctx context.Context, c *call, send func() *reply) (*reply, error) {
	in := s.plan.take(c)
	if in == nil {
		return send(), nil
	}
	return in.fault.Do.meet(ctx, in, c, send)
}

// apply carries the request out, as one step that nothing else comes between.
func (s *Server) apply(c *call) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rep := s.serve(c, now)
	if !c.reads() {
		s.changed()
	}
	rep.date(now)
	return rep
}

func (s *Server) serve(c *call, now time.Time) *reply {
	if c.refusal != nil {
		return c.refusal
	}
	if c.bucket != "" && !s.hasBucket(c.bucket) {
		return bucketMissing()
	}
	switch c.kind {
	case kindRead:
		return s.read(c)
	case kindCreate:
		return s.create(c, now)
	case kindStart:
		return s.startUpload(c, now)
	case kindChunk:
		return s.continueUpload(c, now)
	case kindUpdate:
		return s.update(c, now)
	case kindDelete:
		return s.remove(c, now)
	}
	return s.pass(c, now)
}
