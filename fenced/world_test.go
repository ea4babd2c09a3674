package fenced

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

const (
	testBucket = "jobs"
	testLock   = "nightly/lock"
	testState  = "nightly/state"
	human      = "human" // the client of whoever writes from outside
)

// A world is a strict Cloud Storage in virtual time, with a lock and a state in it.
type world struct {
	*testing.T
	ctx    context.Context // ends after an hour, so that nothing is tried for ever
	server *gcstest.Server
}

// inWorld runs f in a bubble, and checks what every write of the state asked for.
func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w := &world{t, ctx, gcstest.New(testBucket)}
		f(w)
		checkWrites(t, w.server.Requests())
	})
}

// checkWrites asserts that every write of the state carries both numbers, or asks
// for absence.
func checkWrites(t *testing.T, requests []gcstest.Request) {
	t.Helper()
	for _, r := range requests {
		if r.Object != testState || r.Client == human || r.Op == gcstest.Get || strings.Contains(r.URL, "upload_id=") {
			continue
		}
		absence := r.Op == gcstest.Create && r.IfGenerationMatch != nil && *r.IfGenerationMatch == 0
		if !absence && (r.IfGenerationMatch == nil || r.IfMetagenerationMatch == nil) {
			t.Errorf("%s %s: a write without both numbers", r.Method, r.URL)
		}
	}
}

// bucket is the bucket as one client has it, whose requests go through the
// transport, if there is one.
func (w *world) bucket(name string, through func(next http.RoundTripper) http.RoundTripper) *storage.BucketHandle {
	w.Helper()
	next := named{w.server.Transport(), name}
	var transport http.RoundTripper = next
	if through != nil {
		transport = through(next)
	}
	client, err := w.server.Client(context.Background(), option.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client.Bucket(testBucket)
}

// named marks the requests with the client's name.
type named struct {
	http.RoundTripper
	name string
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(gcstest.ClientHeader, n.name)
	return n.RoundTripper.RoundTrip(r)
}

// A holder is one client with a lease.
type holder struct {
	*world
	name   string
	bucket *storage.BucketHandle
	lease  *gcslock.Lease
}

// acquire waits for the lock.
func (w *world) acquire(name string, opts ...gcslock.Option) *holder {
	w.Helper()
	h := &holder{world: w, name: name, bucket: w.bucket(name, nil)}
	lock, err := gcslock.New(h.bucket, testLock, append([]gcslock.Option{gcslock.WithOwner(name)}, opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	if h.lease, err = lock.Acquire(w.ctx); err != nil {
		w.Fatalf("%s: %v", name, err)
	}
	w.Cleanup(func() { _ = h.lease.Release(context.Background()) })
	return h
}

func (h *holder) state() *storage.ObjectHandle { return h.bucket.Object(testState) }

// open opens the state or fails the test.
func (h *holder) open(opts ...Option) *Object {
	h.Helper()
	o, err := Open(h.ctx, h.lease, h.state(), opts...)
	if err != nil {
		h.Fatalf("%s: %v", h.name, err)
	}
	return o
}

// must fails the test if a call that has to succeed did not.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// put writes the state from outside.
func (w *world) put(content string) gcstest.Object {
	return w.server.Put(testBucket, testState, gcstest.Object{Content: []byte(content), ContentType: "text/plain"})
}

// holds asserts what the state is on the server.
func (w *world) holds(content string) gcstest.Object {
	w.Helper()
	o, ok := w.server.Object(testBucket, testState)
	if !ok || string(o.Content) != content {
		w.Errorf("the state is %q (there: %v), want %q", o.Content, ok, content)
	}
	return o
}

// reads asserts what the holder reads.
func (w *world) reads(o *Object, content string) {
	w.Helper()
	got, err := o.Read(w.ctx)
	if err != nil || string(got) != content {
		w.Errorf("read %q, %v, want %q", got, err, content)
	}
}

// ops are the requests for the state by one client, or by all.
func (w *world) ops(name string) string {
	var ops []string
	for _, r := range w.server.Requests() {
		if (name == "" || r.Client == name) && r.Object == testState {
			ops = append(ops, string(r.Op))
		}
	}
	return strings.Join(ops, " ")
}

// inject has the client's requests for the state meet a fault.
func (w *world) inject(client string, op gcstest.Op, n int, do gcstest.Action) *gcstest.Injection {
	return w.server.Inject(gcstest.Fault{Client: client, Object: testState, Op: op, Times: n, Do: do})
}

// lose takes the lock away from a holder that does not learn of it, as if it were
// paused: nothing of it runs any more but what the test calls.
func (w *world) lose() { w.server.Delete(testBucket, testLock) }

// is asserts which of the package's errors err is, and what it says.
func (w *world) is(err error, kinds []error, parts ...string) {
	w.Helper()
	for _, kind := range []error{ErrFenced, ErrConflict, ErrUncertain} {
		if want := slices.Contains(kinds, kind); errors.Is(err, kind) != want {
			w.Errorf("%v is %v: %v", err, kind, !want)
		}
	}
	for _, part := range append(parts, "gs://jobs/nightly/state") {
		if err == nil || !strings.Contains(err.Error(), part) {
			w.Errorf("error %v does not say %q", err, part)
		}
	}
}

// start runs f beside the test, and returns where its error comes.
func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func (w *world) arrived(b *gcstest.Barrier) {
	w.Helper()
	if err := b.Arrived(w.ctx, 1); err != nil {
		w.Fatal(err)
	}
}
