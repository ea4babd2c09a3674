package leases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"

	"google.golang.org/api/option"
)

const (
	testBucket = "jobs"
	testPrefix = "workers"
	latency    = 50 * time.Millisecond // of a request
)

// A world is a strict Cloud Storage and the instances that use it, in virtual
// time.
type world struct {
	*testing.T
	server *gcstest.Server
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &world{T: t, server: gcstest.New(testBucket)})
	})
}

// An instance is one process: a manager, its network, and the context that
// SIGTERM ends.
type instance struct {
	*Manager
	w      *world
	name   string
	ctx    context.Context
	stop   context.CancelFunc
	log    *logs
	frozen atomic.Bool
}

func (w *world) start(name string, cfg Config, opts ...Option) *instance {
	w.Helper()
	cfg.Enabled = true
	i := &instance{w: w, name: name, log: &logs{}}
	i.ctx, i.stop = context.WithCancel(context.Background())
	logger := slog.New(slog.NewTextHandler(i.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	i.Manager = NewManager(i.bucket(), testPrefix, cfg, append([]Option{WithLogger(logger)}, opts...)...)
	w.Cleanup(i.stop)
	return i
}

func (i *instance) bucket() *storage.BucketHandle {
	client, err := storage.NewClient(context.Background(), option.WithoutAuthentication(), storage.WithJSONReads(),
		option.WithEndpoint("http://storage.invalid/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: i}))
	if err != nil {
		i.w.Fatal(err)
	}
	i.w.Cleanup(func() { client.Close() })
	return client.Bucket(testBucket)
}

// RoundTrip is the instance's network.
func (i *instance) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.frozen.Load() {
		<-r.Context().Done() // nothing leaves it any more
		return nil, r.Context().Err()
	}
	time.Sleep(latency)
	r.Header.Set(gcstest.ClientHeader, i.name)
	return i.w.server.Transport().RoundTrip(r)
}

// kill stops what the instance does to the world: its network is dead for good.
// That its functions do nothing any more is for the test to see to.
func (i *instance) kill() { i.frozen.Store(true) }

// shutDown is SIGTERM, and fails the test unless all stops.
func (i *instance) shutDown() {
	i.w.Helper()
	i.stop()
	if err := i.Wait(time.Minute); err != nil {
		i.w.Errorf("%s: %v", i.name, err)
	}
}

// status is that of one worker.
func (i *instance) status(name string) Status {
	i.w.Helper()
	synctest.Wait()
	for _, s := range i.Status() {
		if s.Name == name {
			return s
		}
	}
	i.w.Fatalf("%s: no status of %q", i.name, name)
	return Status{}
}

// is asserts the state of a worker.
func (i *instance) is(name string, state State) Status {
	i.w.Helper()
	s := i.status(name)
	if s.State != state {
		i.w.Errorf("%s: worker %q is %s since %s (%s), want %s", i.name, name, s.State, s.Since, s.LastError, state)
	}
	return s
}

// count is how many requests of an instance there were of one kind.
func (w *world) count(client string, op gcstest.Op) int {
	n := 0
	for _, r := range w.server.Requests() {
		if r.Client == client && r.Op == op {
			n++
		}
	}
	return n
}

func (w *world) object(name string) (gcstest.Object, bool) {
	return w.server.Object(testBucket, testPrefix+"/"+name)
}

// untilCancelled is a worker that stops when it is told to.
func untilCancelled(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A journal has every run of a worker, and finds two at once.
type journal struct {
	t  *testing.T
	mu sync.Mutex // guards the rest
	// running is who runs a name: the instances, without those that are dead.
	running map[string]map[*instance]bool
	starts  map[string][]start
	ended   map[string]time.Time // the last run
}

type start struct {
	who   *instance
	at    time.Time
	pause time.Duration // since the run before, if there was one
	token int64
}

func newJournal(t *testing.T) *journal {
	return &journal{t: t, running: map[string]map[*instance]bool{}, starts: map[string][]start{}, ended: map[string]time.Time{}}
}

// worker is a worker that takes note, and needs a moment to stop.
func (j *journal) worker(i *instance, name string, stops time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		j.enter(i, name, Token(ctx))
		defer j.leave(i, name)
		<-ctx.Done()
		time.Sleep(stops)
		return ctx.Err()
	}
}

func (j *journal) enter(i *instance, name string, token int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i.frozen.Load() {
		return
	}
	if len(j.running[name]) > 0 {
		j.t.Errorf("%s starts %q while it runs elsewhere", i.name, name)
	}
	if j.running[name] == nil {
		j.running[name] = map[*instance]bool{}
	}
	j.running[name][i] = true
	s := start{who: i, at: time.Now(), token: token}
	if ended, ok := j.ended[name]; ok {
		s.pause = s.at.Sub(ended)
	}
	j.starts[name] = append(j.starts[name], s)
}

func (j *journal) leave(i *instance, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running[name][i] {
		delete(j.running[name], i)
		j.ended[name] = time.Now()
	}
}

// kill kills an instance: what it ran runs no more. It returns the names.
func (j *journal) kill(i *instance) (ran []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i.kill()
	for name, who := range j.running {
		if who[i] {
			ran = append(ran, name)
			delete(who, i)
			j.ended[name] = time.Now()
		}
	}
	return ran
}

// last is the last start of a name.
func (j *journal) last(name string) start {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.starts[name]); n > 0 {
		return j.starts[name][n-1]
	}
	return start{}
}

// logs are log lines.
type logs struct {
	// then, if set, is called with each line.
	then func(line string)

	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	if l.then != nil {
		l.then(string(p))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lines are those that have all the parts.
func (l *logs) lines(parts ...string) int {
	n := 0
next:
	for line := range strings.Lines(l.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		n++
	}
	return n
}

// says asserts that an error's text has all the parts.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

var errTest = errors.New("out of coffee")

var quiet = WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("worker-%d", i))
	}
	return all
}

// bucketOf is a handle that no request is sent through.
func bucketOf(t *testing.T) *storage.BucketHandle {
	t.Helper()
	client, err := gcstest.New(testBucket).Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client.Bucket(testBucket)
}
