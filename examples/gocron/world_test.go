package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"
	"github.com/go-co-op/gocron/v2"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock/gcstest"
)

const interval = time.Minute

// A world is instances on one Cloud Storage, in virtual time.
type world struct {
	*testing.T
	server *gcstest.Server
	began  time.Time

	mu   sync.Mutex // guards runs
	runs []ran
}

// A ran is one run of the job. tick is the interval that it belongs to, counted
// from the start: instances whose clocks are behind run within half of it.
type ran struct {
	instance string
	tick     int
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &world{T: t, server: gcstest.New("jobs"), began: time.Now()})
	})
}

// A network is an instance's way to storage. Where it is cut off nothing leaves
// the instance any more, as after a kill.
type network struct {
	server *gcstest.Server
	cut    atomic.Bool
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.cut.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	time.Sleep(20 * time.Millisecond)
	return n.server.Transport().RoundTrip(r)
}

func (w *world) bucket() (*storage.BucketHandle, *network) {
	w.Helper()
	n := &network{server: w.server}
	client, err := storage.NewClient(context.Background(), option.WithoutAuthentication(), storage.WithJSONReads(),
		option.WithEndpoint("http://storage.invalid/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: n}))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client.Bucket("jobs"), n
}

// run notes a run of the job.
func (w *world) run(instance string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, ran{instance, int(time.Since(w.began) / interval)})
}

// who ran, per tick, of all ticks up to the last: several for one tick where
// there were several runs.
func (w *world) who() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var who []string
	for _, r := range w.runs {
		for len(who) <= r.tick {
			who = append(who, "")
		}
		who[r.tick] = strings.TrimSpace(who[r.tick] + " " + r.instance)
	}
	return who
}

// once asserts that each of the ticks had one run, and returns whose.
func (w *world) once(from, to int) []string {
	w.Helper()
	who := w.who()
	for len(who) < to {
		who = append(who, "")
	}
	for tick := from; tick < to; tick++ {
		if n := len(strings.Fields(who[tick])); n != 1 {
			w.Errorf("tick %d was run by %q, want one instance; all: %q", tick, who[tick], who)
		}
	}
	return slices.Compact(slices.Clone(who[from:to]))
}

// start starts a scheduler with the one job, every interval from now on.
func (w *world) start(task func(context.Context) error, opts ...gocron.SchedulerOption) gocron.Scheduler {
	w.Helper()
	s, err := gocron.NewScheduler(opts...)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := s.NewJob(gocron.DurationJob(interval), gocron.NewTask(task), gocron.WithName("report")); err != nil {
		w.Fatal(err)
	}
	s.Start()
	return s
}

func (w *world) shutDown(s gocron.Scheduler) {
	w.Helper()
	if err := s.Shutdown(); err != nil {
		w.Error(err)
	}
}
