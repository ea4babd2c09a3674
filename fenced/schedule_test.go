package fenced

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

var (
	schedules = flag.Uint64("schedules", defaultSchedules, "how many schedules TestSchedules runs")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first")
)

// TestSchedules: three clients hold the lock in turn and work on one state, in
// virtual time. They are paused between any two requests, for longer than their
// leases last, and their requests and replies are lost, come late and come twice.
// Whatever a seed brings about, the history is one of a register that only the
// holder can write, see register_test.go; and no write is applied once a later
// holder has claimed, see wire_test.go.
func TestSchedules(t *testing.T) {
	var sum totals
	for seed := *firstSeed; seed < *firstSeed+*schedules && !t.Failed(); seed++ {
		s := newSchedule(seed)
		synctest.Test(t, func(t *testing.T) { s.run(t) })
		if err := s.judge(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		sum.add(s.totals)
	}
	t.Logf("%d schedules: %+v", *schedules, sum)
	if *schedules >= 100 && (sum.Paused == 0 || sum.Fenced == 0 || sum.Uncertain == 0 || sum.Written == 0 || sum.LateClaims == 0 || sum.Conflicts == 0) {
		t.Errorf("something never happened: %+v", sum)
	}
}

// totals are what happened.
type totals struct {
	Requests, Opened, Written, Uncertain, Fenced, Conflicts int
	Stale                                                   int // writes that arrived when their sender had lost the lock
	LateClaims                                              int // claims that did
	Paused                                                  int // schedules with a stale write or claim
}

func (t *totals) add(o totals) {
	if o.Stale+o.LateClaims > 0 {
		t.Paused++
	}
	t.Requests += o.Requests
	t.Opened += o.Opened
	t.Written += o.Written
	t.Uncertain += o.Uncertain
	t.Fenced += o.Fenced
	t.Conflicts += o.Conflicts
	t.Stale += o.Stale
	t.LateClaims += o.LateClaims
}

// A schedule is one world that a seed decides.
type schedule struct {
	seed    uint64
	began   time.Time
	server  *gcstest.Server
	outside bool // somebody writes who holds no lock
	missing bool // the state has to be made
	slow    bool // the holders' clocks are
	broken  bool // somebody deletes the lock under its holders

	mu      sync.Mutex // guards the rest
	clock   int64      // counts what was observed
	values  int
	history []event
	order   map[int64]int // when each token was given out
	claimed int           // the latest token's that claimed
	wrong   error
	totals
}

func newSchedule(seed uint64) *schedule {
	return &schedule{seed: seed, outside: seed%4 == 0, missing: seed%3 == 0, slow: seed%2 == 0, broken: seed%5 < 2, order: make(map[int64]int)}
}

const (
	leaseTTL  = 3 * time.Second
	sections  = 3
	longPause = 9 * time.Second
)

func (s *schedule) run(t *testing.T) {
	s.began, s.server = time.Now(), gcstest.New(testBucket)
	if !s.missing {
		s.server.Put(testBucket, testState, gcstest.Object{})
		s.set("first")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for id := range 3 {
		running.Go(func() { s.client(ctx, uint64(id)) })
	}
	running.Go(func() { s.observe(ctx) })
	running.Wait()
	time.Sleep(time.Minute) // what is still under way arrives
	s.see()
}

// client takes the lock, works, and gives it back or crashes.
func (s *schedule) client(ctx context.Context, id uint64) {
	w := newWire(s, id)
	client, err := s.server.Client(ctx, option.WithHTTPClient(&http.Client{Transport: w}))
	if err != nil {
		panic(err) // it opens no connection
	}
	defer client.Close()
	opts := []gcslock.Option{gcslock.WithTTL(leaseTTL), gcslock.WithWait(200*time.Millisecond, time.Second)}
	if w.roll("manual") < 0.5 {
		opts = append(opts, gcslock.WithManualRefresh())
	}
	lock, err := gcslock.New(client.Bucket(testBucket), testLock, opts...)
	if err != nil {
		panic(err)
	}
	if s.slow {
		inside.Replace.(func(*gcslock.Lock, inside.Seams))(lock, inside.Seams{Now: s.slowClock, Random: func(d time.Duration) time.Duration { return w.below("chance", d) }})
	}
	for range sections {
		lease, err := lock.Acquire(ctx)
		if err != nil {
			continue
		}
		s.section(ctx, w, lease, client.Bucket(testBucket).Object(testState))
		if w.roll("crash") < 0.2 {
			inside.Crash.(func(*gcslock.Lease, error))(lease, errors.New("crashed"))
			continue
		}
		_ = lease.Release(ctx)
		time.Sleep(w.below("rest", time.Second))
	}
}

// slowClock runs at a tenth of the speed: a lease that it measures counts as valid
// long after the server let somebody else in. The lock cannot stand that, and the
// state has to.
func (s *schedule) slowClock() inside.Reading {
	d := time.Since(s.began) / 10
	return inside.Reading{Mono: d, Awake: d, Wall: s.began.Add(d)}
}

// section is what is done under one lease.
func (s *schedule) section(ctx context.Context, w *wire, lease *gcslock.Lease, obj *storage.ObjectHandle) {
	var o *Object
	for range 5 {
		time.Sleep(w.below("think", 300*time.Millisecond))
		limit := 30 * time.Second
		if w.roll("impatience") < 0.3 {
			limit = w.below("patience", 2*time.Second)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		var err error
		if o == nil {
			o, err = s.open(ctx, lease, obj)
		} else {
			err = s.work(ctx, w, o)
		}
		cancel()
		if errors.Is(err, ErrConflict) {
			o = nil // open it again
		}
		if errors.Is(err, ErrFenced) {
			return
		}
	}
}

func (s *schedule) open(ctx context.Context, lease *gcslock.Lease, obj *storage.ObjectHandle) (*Object, error) {
	e := s.call(event{kind: open, token: lease.Token(), value: s.value()})
	o, err := Open(ctx, lease, obj, WithInitial([]byte(e.value)))
	s.returned(e, err)
	return o, err
}

// work is one call on the state.
func (s *schedule) work(ctx context.Context, w *wire, o *Object) (err error) {
	e := event{token: o.lease.Token(), value: s.value()}
	switch p := w.roll("work"); {
	case p < 0.3:
		e.kind = read
		e = s.call(e)
		var data []byte
		data, err = o.Read(ctx)
		e.value = string(data)
	case p < 0.6:
		e.kind = write
		e = s.call(e)
		err = o.Write(ctx, []byte(e.value))
	case p < 0.7:
		e.kind = write
		e = s.call(e)
		err = o.WriteFrom(ctx, newValueReader(e.value))
	default:
		e.kind = update
		e = s.call(e)
		err = o.Update(ctx, func(old []byte) ([]byte, error) {
			e.old = string(old)
			return []byte(e.value), nil
		})
	}
	s.returned(e, err)
	return err
}

// observe looks at the state, and in some schedules changes it, with no lock.
func (s *schedule) observe(ctx context.Context) {
	w := newWire(s, 9)
	for range 20 {
		time.Sleep(w.below("look", 3*time.Second))
		s.see()
		if s.outside && w.roll("outside") < 0.1 {
			s.set(s.value())
		}
		if s.broken && w.roll("break") < 0.5 {
			s.server.Delete(testBucket, testLock)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// see records what the state is.
func (s *schedule) see() {
	e := s.call(event{kind: seen})
	o, _ := s.server.Object(testBucket, testState)
	e.value = string(o.Content)
	s.returned(e, nil)
}

// set is a change from outside.
func (s *schedule) set(value string) {
	e := s.call(event{kind: set, value: value})
	s.server.Put(testBucket, testState, gcstest.Object{Content: []byte(value)})
	s.returned(e, nil)
}

// value is a new one.
func (s *schedule) value() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values++
	return fmt.Sprintf("v%d", s.values)
}

func (s *schedule) call(e event) event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	e.called = s.clock
	return e
}

// returned records a call with what it said.
func (s *schedule) returned(e event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	e.returned, e.uncertain = s.clock, errors.Is(err, ErrUncertain)
	switch {
	case errors.Is(err, ErrFenced):
		s.Fenced++
	case errors.Is(err, ErrConflict):
		s.Conflicts++
		if !s.outside {
			s.violate("a conflict, and nobody wrote from outside")
		}
	}
	switch {
	case e.uncertain:
		s.Uncertain++
		e.returned = never // it may take effect at any time, or not at all
	case err != nil:
		return // it has no effect
	case e.kind == open:
		s.Opened++
	case e.kind == write || e.kind == update:
		s.Written++
	}
	s.history = append(s.history, e)
}

// violate keeps what must not happen; the first counts. Needs mu.
func (s *schedule) violate(format string, args ...any) {
	if s.wrong == nil {
		s.wrong = fmt.Errorf("after %v: %s", time.Since(s.began), fmt.Sprintf(format, args...))
	}
}

func (s *schedule) judge() error {
	if s.wrong != nil {
		return s.wrong
	}
	return check(s.history)
}
