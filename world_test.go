package gcslock

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock/gcstest"
)

// checkedWrites counts the updates and deletes whose preconditions were
// checked, over the whole suite.
var checkedWrites atomic.Int64

func TestMain(m *testing.M) {
	flag.Parse()
	asked := func(flags ...string) bool {
		return slices.ContainsFunc(os.Args, func(arg string) bool {
			name, _, _ := strings.Cut(arg, "=")
			return slices.Contains(flags, name)
		})
	}
	// The parallel tests wait, on several servers; they hardly compute. When
	// fuzzing it is the number of processes.
	if !asked("-test.fuzz", "-test.parallel") {
		if err := flag.Set("test.parallel", "32"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	code := m.Run()
	whole := !asked("-test.run", "-test.fuzz")
	if n := checkedWrites.Load(); code == 0 && whole && n < 100 {
		fmt.Printf("only %d updates and deletes of the whole suite were checked for their preconditions\n", n)
		code = 1
	}
	os.Exit(code)
}

// A world is a strict Cloud Storage and what happens in it, in virtual time.
type world struct {
	*testing.T
	server *gcstest.Server
}

const (
	testBucket = "jobs"
	testObject = "nightly/lock"
)

// inWorld runs f in a synctest bubble with a server of its own, and checks that
// every write of the library, whatever f was about, carried what the protocol
// demands.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: gcstest.New(testBucket)}
		f(t, w)
		checkWrites(t, w.server.Requests())
	})
}

// checkWrites asserts the preconditions of a request log: every create says
// does-not-exist, every update and delete carries generation and
// metageneration, and every delete names the generation in the request, too.
func checkWrites(t *testing.T, requests []gcstest.Request) {
	t.Helper()
	for _, r := range requests {
		switch r.Op {
		case gcstest.Create:
			if r.IfGenerationMatch == nil || *r.IfGenerationMatch != 0 {
				t.Errorf("%s %s: a create without its does-not-exist precondition", r.Method, r.URL)
			}
		case gcstest.Update, gcstest.Delete:
			checkedWrites.Add(1)
			if r.IfGenerationMatch == nil || r.IfMetagenerationMatch == nil {
				t.Errorf("%s %s: a write without both numbers", r.Method, r.URL)
			} else if r.Op == gcstest.Delete && r.Generation != *r.IfGenerationMatch {
				t.Errorf("%s %s: a delete that does not select the generation", r.Method, r.URL)
			}
		}
	}
}

// A machine is one client of the world, with clocks and a network of its own.
type machine struct {
	*world
	name  string
	clock *testClock
	// between, if set, carries the requests instead of the network.
	between func(next http.RoundTripper, r *http.Request) (*http.Response, error)
}

func (w *world) machine(name string) *machine {
	return &machine{world: w, name: name, clock: &testClock{start: time.Now()}}
}

// lock is a lock of this machine on the test object.
func (m *machine) lock(opts ...Option) *Lock {
	m.Helper()
	l, err := New(m.bucket(testBucket), testObject, append([]Option{WithOwner(m.name)}, opts...)...)
	if err != nil {
		m.Fatal(err)
	}
	l.clock = m.clock
	return l
}

// bucket is a handle of a client of this machine's own. The tests that
// TestOverGRPC runs get one for gRPC.
func (m *machine) bucket(name string) *storage.BucketHandle {
	m.Helper()
	if strings.HasPrefix(m.Name(), "TestOverGRPC/") {
		return m.grpc().Bucket(name)
	}
	client, err := storage.NewClient(context.Background(), option.WithoutAuthentication(), storage.WithJSONReads(),
		option.WithEndpoint("http://storage.invalid/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: m}))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { client.Close() })
	return client.Bucket(name)
}

// RoundTrip makes the machine its own transport.
func (m *machine) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set(gcstest.ClientHeader, m.name)
	if m.between != nil {
		return m.between(m.server.Transport(), r)
	}
	return m.server.Transport().RoundTrip(r)
}

// acquire gets the lock or fails the test.
func (m *machine) acquire(opts ...Option) *Lease {
	m.Helper()
	lease, err := m.lock(opts...).Acquire(context.Background())
	if err != nil {
		m.Fatalf("%s: %v", m.name, err)
	}
	return lease
}

// crash stops all that the lease does on its machine, and leaves the object.
func (m *machine) crash(lease *Lease) {
	lease.end(fmt.Errorf("%s crashed", m.name))
	lease.refresher.Wait()
}

func (w *world) release(lease *Lease) {
	w.Helper()
	if err := lease.Release(context.Background()); err != nil {
		w.Fatalf("release: %v", err)
	}
}

// ops are the requests so far, by operation and in order, of the named machine
// or of all.
func (w *world) ops(name string) string {
	var ops []string
	for _, r := range w.server.Requests() {
		if name == "" || r.Client == name {
			ops = append(ops, string(r.Op))
		}
	}
	return strings.Join(ops, " ")
}

// count is how many requests of one kind there were.
func (w *world) count(op gcstest.Op) int {
	n := 0
	for _, r := range w.server.Requests() {
		if r.Op == op {
			n++
		}
	}
	return n
}

// inject adds a fault for the next n requests of one kind.
func (w *world) inject(op gcstest.Op, n int, do gcstest.Action) *gcstest.Injection {
	return w.server.Inject(gcstest.Fault{Op: op, Times: n, Do: do})
}

// object is the lock object as the server has it.
func (w *world) object() (gcstest.Object, bool) { return w.server.Object(testBucket, testObject) }

// rival puts a lock object of another holder in place, replacing any.
func (w *world) rival() gcstest.Object {
	now := reading{wall: time.Now()}
	s, err := newSettings([]Option{WithOwner("rival")})
	if err != nil {
		w.Fatal(err)
	}
	return w.server.Put(testBucket, testObject, gcstest.Object{
		Metadata: s.newMetadata(ownAttempt{randomID(nonceBytes), now}, randomID(refreshBytes), now),
	})
}

// lost asserts that the lease is lost, everywhere where it can be seen.
func (w *world) lost(lease *Lease) {
	w.Helper()
	for name, err := range map[string]error{
		"Err": lease.Err(), "the context's cause": context.Cause(lease.Context()),
		"Refresh": lease.Refresh(context.Background()),
	} {
		isLoss(w.T, name, err)
	}
}

// testClock is a machine's clocks in virtual time, with what can go wrong with
// them.
type testClock struct {
	start time.Time

	mu        sync.Mutex    // guards the rest
	suspended time.Duration // time that only the clock that goes on in suspend saw
	stepped   time.Duration // of the wall clock
}

func (c *testClock) now() reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono := time.Since(c.start)
	return reading{
		mono:  mono,
		awake: mono + c.suspended,
		wall:  time.Now().Round(0).Add(c.suspended + c.stepped),
	}
}

// suspend makes d pass as in a suspend: timers and the monotonic clock stand
// still.
func (c *testClock) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended += d
}

// step sets the wall clock.
func (c *testClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepped += d
}

// twice is a network that carries the requests with this method two times, and
// brings back the second reply.
func twice(method string) func(http.RoundTripper, *http.Request) (*http.Response, error) {
	return func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method != method {
			return next.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		send := func() (*http.Response, error) {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			return next.RoundTrip(again)
		}
		if _, err := send(); err != nil {
			return nil, err
		}
		return send()
	}
}

// arrived waits until a request is at the barrier.
func (w *world) arrived(b *gcstest.Barrier) {
	w.Helper()
	if err := b.Arrived(w.Context(), 1); err != nil {
		w.Error(err)
	}
}
