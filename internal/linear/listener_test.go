package linear

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// A run is one lock on a server that listens, and what its users saw of it.
type run struct {
	t      *testing.T
	server *gcstest.Listener
	began  time.Time
	broken chan int64 // tokens for the operator to break

	mu      sync.Mutex
	history []Op
}

// noted does something, and notes it as one operation unless it says not to.
func (r *run) noted(client int, do func() (kind Kind, token int64, ok bool)) {
	call := time.Since(r.began)
	kind, token, ok := do()
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, Op{Kind: kind, Client: client, Token: token, Call: call, Return: time.Since(r.began)})
}

// A wire can be cut.
type wire struct {
	cut  atomic.Bool
	next http.RoundTripper
}

var errCut = errors.New("the wire is cut")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, errCut
	}
	return w.next.RoundTrip(r)
}

// lock is one client's, with a wire of its own.
func (r *run) lock(w *wire) *gcslock.Lock {
	client, err := r.server.Client(r.t.Context(), option.WithHTTPClient(&http.Client{Transport: w}))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { client.Close() })
	l, err := gcslock.New(client.Bucket("jobs"), "lock", gcslock.WithTTL(3*time.Second), gcslock.WithWait(5*time.Millisecond, 50*time.Millisecond))
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

const (
	workers   = 5
	sections  = 6
	cutWorker = 1 // loses the lock in the middle, because its wire is cut
	brokenOne = 3 // the same, because it is broken
)

// work is one worker's sections.
func (r *run) work(client int) {
	w := &wire{next: http.DefaultTransport}
	l := r.lock(w)
	for section := range sections {
		var lease *gcslock.Lease
		r.noted(client, func() (Kind, int64, bool) {
			var err error
			if lease, err = l.Acquire(r.t.Context()); err != nil {
				r.t.Errorf("client %d: %v", client, err)
				return 0, 0, false
			}
			return Acquire, lease.Token(), true
		})
		if lease == nil {
			return
		}
		toLose := section == sections/2 && (client == cutWorker || client == brokenOne)
		if toLose && client == cutWorker {
			w.cut.Store(true)
		}
		if toLose && client == brokenOne {
			r.broken <- lease.Token()
		}
		since := r.hold(client, lease, toLose)
		w.cut.Store(false)
		r.giveBack(client, lease, since)
	}
}

// hold asks the lease a few times, or until it is lost, and returns when it was
// last asked for the last good answer.
func (r *run) hold(client int, lease *gcslock.Lease, untilLost bool) time.Duration {
	since := time.Since(r.began)
	for asked := 0; asked < 5 || untilLost; asked++ {
		call := time.Since(r.began)
		if lease.Err() != nil {
			break
		}
		since = call
		r.noted(client, func() (Kind, int64, bool) { return Hold, lease.Token(), lease.Err() == nil })
		time.Sleep(2 * time.Millisecond) // the work
	}
	return since
}

func (r *run) giveBack(client int, lease *gcslock.Lease, since time.Duration) {
	call := time.Since(r.began)
	op := Op{Kind: Release, Client: client, Token: lease.Token(), Call: call}
	if err := lease.Release(context.Background()); err != nil {
		op.Kind, op.Call = End, since
	}
	op.Return = time.Since(r.began)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
}

// operate breaks what it is told to.
func (r *run) operate() {
	l := r.lock(&wire{next: http.DefaultTransport})
	for token := range r.broken {
		r.noted(workers, func() (Kind, int64, bool) {
			if err := l.Break(r.t.Context(), token); err != nil {
				r.t.Error(err)
			}
			return Break, token, true
		})
	}
}

// TestRealRun: the same over a socket and in real time, with lost replies, a
// worker that is cut off for a ttl, and a lock that is broken.
func TestRealRun(t *testing.T) {
	server := gcstest.New("jobs")
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, op := range []gcstest.Op{gcstest.Create, gcstest.Delete, gcstest.Get} {
		server.Inject(gcstest.Fault{Op: op, Times: 4, Do: gcstest.LoseReply()})
		server.Inject(gcstest.Fault{Op: op, Times: 2, Do: gcstest.FailStatus(http.StatusServiceUnavailable)})
	}
	r := &run{t: t, server: listener, began: time.Now(), broken: make(chan int64)}
	var working, operating sync.WaitGroup
	operating.Go(r.operate)
	for i := range workers {
		working.Go(func() { r.work(i) })
	}
	working.Wait()
	close(r.broken)
	operating.Wait()
	if err := Check(r.history); err != nil {
		t.Fatal(err)
	}
	seen := map[Kind]int{}
	for _, o := range r.history {
		seen[o.Kind]++
	}
	if seen[Acquire] != workers*sections || seen[End] < 2 || seen[Break] != 1 || seen[Release] < seen[Acquire]/2 {
		t.Errorf("too little happened: %v", seen)
	}
	doctor(r.history)
	if Check(r.history) == nil {
		t.Error("a lock that somebody else had got was held once more, and nobody noticed")
	}
}

// doctor has the one who gave the lock back first hold it once more at the end.
func doctor(history []Op) {
	last, first := history[len(history)-1], -1
	for i, o := range history {
		if o.Kind == Hold && first < 0 {
			first = i
		}
	}
	history[first].Call, history[first].Return = last.Return+1, last.Return+1
}
