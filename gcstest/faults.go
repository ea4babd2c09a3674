package gcstest

import (
	"net/http"
	"sync"
)

// Fault says which requests fail, and how.
type Fault struct {
	// Op, Bucket, Object and Client choose the requests; empty is any, and an
	// empty Op includes Other.
	Op                     Op
	Bucket, Object, Client string
	// Match chooses further, if it isn't nil. The request's body has been read
	// already, and can't be. It must not call the server.
	Match func(*http.Request) bool
	// Skip lets that many chosen requests pass first.
	Skip int
	// Times is how many requests meet the fault; 0 is all, until it is removed.
	Times int
	// Do is what happens to them.
	Do Action
}

// Injection is a Fault that has been injected.
type Injection struct {
	fault   Fault
	plan    *faultPlan
	removed chan struct{}

	// guarded by plan.mu
	seen, hits int
	gone       bool
	withheld   []func() *reply
}

// faultPlan has a lock of its own, which is held only to choose a fault.
type faultPlan struct {
	mu         sync.Mutex // guards injections, and each one's counts
	injections []*Injection
}

// Inject adds a fault. The first one, in the order of injection, that matches a
// request and is not used up applies to it, and no other. In a synctest bubble
// inject from inside. It panics if the fault has no action.
func (s *Server) Inject(f Fault) *Injection {
	if f.Do == nil {
		panic("gcstest: Fault.Do is nil")
	}
	in := &Injection{fault: f, plan: &s.plan, removed: make(chan struct{})}
	s.plan.mu.Lock()
	defer s.plan.mu.Unlock()
	s.plan.injections = append(s.plan.injections, in)
	return in
}

// Remove ends the fault, and lets the requests go on that hang or wait because
// of it. Further calls do nothing.
func (in *Injection) Remove() {
	in.plan.mu.Lock()
	defer in.plan.mu.Unlock()
	if !in.gone {
		in.gone = true
		close(in.removed)
	}
}

// Hits is how many requests have met the fault so far.
func (in *Injection) Hits() int {
	in.plan.mu.Lock()
	defer in.plan.mu.Unlock()
	return in.hits
}

// Deliver applies the requests that Withhold has kept back, in the order of
// their arrival, and returns the statuses of the replies that nobody gets. Each
// is delivered once.
func (in *Injection) Deliver() []int {
	in.plan.mu.Lock()
	withheld := in.withheld
	in.withheld = nil
	in.plan.mu.Unlock()
	var statuses []int
	for _, send := range withheld {
		statuses = append(statuses, send().status)
	}
	return statuses
}

func (in *Injection) withhold(send func() *reply) {
	in.plan.mu.Lock()
	defer in.plan.mu.Unlock()
	in.withheld = append(in.withheld, send)
}

// take returns the fault that the request meets, or nil.
func (p *faultPlan) take(c *call) *Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.injections {
		if in.gone || in.fault.Times > 0 && in.hits >= in.fault.Times || !in.fault.chooses(c) {
			continue
		}
		in.seen++
		if in.seen <= in.fault.Skip {
			continue
		}
		in.hits++
		return in
	}
	return nil
}

func (f *Fault) chooses(c *call) bool {
	return (f.Op == "" || f.Op == c.op) &&
		(f.Bucket == "" || f.Bucket == c.bucket) &&
		(f.Object == "" || f.Object == c.object) &&
		(f.Client == "" || f.Client == c.client) &&
		(f.Match == nil || f.Match(c.request()))
}

// request is for Match: a copy, because the function is a stranger's.
func (c *call) request() *http.Request {
	return &http.Request{
		Method: c.method, URL: cloneURL(c.url), Host: c.host, Header: c.header.Clone(), Body: http.NoBody,
	}
}
