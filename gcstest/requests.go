package gcstest

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Op is what a request does to an object.
type Op string

// The operations on objects, which are the ones that a lock uses, and the rest.
const (
	// Create is an upload, in one request or several, and also a copy or a
	// composition, under its destination's name.
	Create Op = "create"
	// Get reads attributes, or content.
	Get Op = "get"
	// Update changes an object's metadata.
	Update Op = "update"
	// Delete deletes an object, or one version of it.
	Delete Op = "delete"
	// Other is any other request: listing, buckets, access control.
	Other Op = "other"
)

// Request is a request as the server got it, and what became of it.
type Request struct {
	// Time of arrival, by the server's clock.
	Time time.Time
	// Op, with Bucket and Object as far as the request names them.
	Op             Op
	Bucket, Object string
	// Client is what ClientAs was given, or the ClientHeader.
	Client string
	// Method and URL of the request.
	Method, URL string
	// Header of the request.
	Header http.Header
	// Body of the request, whole.
	Body []byte
	// Generation that the request selects; 0 if it names none.
	Generation int64
	// The preconditions that the request carries; nil where it doesn't.
	IfGenerationMatch, IfGenerationNotMatch         *int64
	IfMetagenerationMatch, IfMetagenerationNotMatch *int64
	// Status of the server's reply; 0 if it made none, because the request was
	// lost on its way in, or is still being delayed.
	Status int
	// Applied tells whether the request came as far as being carried out (and
	// was then done or refused on its merits: see Status), rather than be ended
	// by a fault before that.
	Applied bool
	// Lost tells whether the client was left without that reply, or without a
	// part of it.
	Lost bool
}

// requestLog has a lock of its own, so that it can be read while a request is
// being applied.
type requestLog struct {
	mu      sync.Mutex // guards entries and what they point to
	entries []*Request
}

// Requests returns the requests since New or ResetRequests, in the order in
// which they arrived. What is done out of band is not among them.
func (s *Server) Requests() []Request {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	all := make([]Request, len(s.log.entries))
	for i, e := range s.log.entries {
		all[i] = *e
		all[i].Header = e.Header.Clone()
		all[i].Body = slices.Clone(e.Body)
	}
	return all
}

// ResetRequests forgets the requests so far.
func (s *Server) ResetRequests() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.entries = nil
}

func (l *requestLog) add(c *call, now time.Time) *Request {
	e := &Request{
		Time:                     now,
		Op:                       c.op,
		Bucket:                   c.bucket,
		Object:                   c.object,
		Client:                   c.client,
		Method:                   c.method,
		URL:                      c.url.String(),
		Header:                   c.header,
		Body:                     c.body,
		Generation:               c.generation,
		IfGenerationMatch:        c.conditions.generationMatch,
		IfGenerationNotMatch:     c.conditions.generationNotMatch,
		IfMetagenerationMatch:    c.conditions.metagenerationMatch,
		IfMetagenerationNotMatch: c.conditions.metagenerationNotMatch,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	return e
}

func (l *requestLog) replied(e *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Status = status
}

func (l *requestLog) applied(e *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Status, e.Applied = status, true
}

func (l *requestLog) lost(e *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Lost = true
}
