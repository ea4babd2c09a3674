package leases

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gcslock/gcslock"
)

const (
	// shortestPause is the least between two requests of a follower, and the
	// first pause after one that failed.
	shortestPause = 100 * time.Millisecond

	// quickPause is the pause between two looks in the time quickFor after a
	// start and after a change of the leader. In a rolling deployment the
	// instance that starts waits for one that is about to stop: it is ready
	// within seconds, and the other one has half a minute to stop.
	quickPause = time.Second
	quickFor   = 2 * time.Minute
)

// A worker is one Run of a name.
type worker struct {
	m    *Manager
	name string
	log  *slog.Logger
	lock *gcslock.Lock // nil where the manager is not enabled
	url  string        // the lock object's gs:// name; empty there
	done chan struct{} // closed when it has stopped

	mu         sync.Mutex // guards the rest
	state      State
	since      time.Time
	token      int64
	holder     gcslock.Info // what the last look showed
	holderSeen time.Time
	quickUntil time.Time // looks are quick until then
	last       error
	lastAt     time.Time
	unreleased error // why the last lease could not be released
}

func (m *Manager) newWorker(name string) *worker {
	now := time.Now()
	w := &worker{
		m: m, name: name,
		log:  m.logger.With("worker", name, "owner", m.holder),
		done: make(chan struct{}),

		state: Following, since: now,
		quickUntil: now.Add(quickFor),
	}
	if m.cfg.Enabled && m.bucket != nil {
		w.url = (&gcslock.Info{Bucket: m.bucket.BucketName(), Object: m.prefix + name}).URL()
		w.log = w.log.With("lease", w.url)
	}
	return w
}

// look takes what a look at the held lock showed, and is the pause before the
// next one.
func (w *worker) look(holder gcslock.Info) time.Duration {
	now := time.Now()
	w.mu.Lock()
	changed := holder.Generation != w.holder.Generation
	w.holder, w.holderSeen = holder, now
	if changed {
		w.quickUntil = now.Add(quickFor)
	}
	quick := now.Before(w.quickUntil)
	w.mu.Unlock()
	if changed && holder.Foreign {
		err := fmt.Errorf("%s is held by an object that is no lock of this library and never expires: remove it if it is not meant to keep the worker from running", holder.URL())
		w.failed(err)
		w.log.Error("worker kept out", "error", err)
	}
	d := w.m.cfg.RenewInterval
	switch {
	case w.m.watch > 0:
		d = min(d, w.m.watch)
	case quick:
		d = min(d, quickPause)
	}
	return jitter(d)
}

// jitter is a pause of d or up to a tenth more, so that instances that started
// together do not look together, and no more often than once in d.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

// set changes the state.
func (w *worker) set(state State, token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != state {
		w.state, w.since = state, time.Now()
	}
	w.token = token
}

// failed keeps an error for Status.
func (w *worker) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.lastAt = err, time.Now()
}

// released keeps what became of the last lease.
func (w *worker) released(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unreleased = err
}

func (w *worker) releaseError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unreleased
}

// stopped marks the end of the Run.
func (w *worker) stopped() {
	w.set(Stopped, 0)
	close(w.done)
}

func (w *worker) runs() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

func (w *worker) status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{Name: w.name, State: w.state, Since: w.since, Token: w.token, Object: w.url}
	if w.state == Following {
		s.Holder, s.HolderSeen = w.holder.Owner, w.holderSeen
	}
	if w.last != nil {
		s.LastError, s.LastErrorAt = w.last.Error(), w.lastAt
	}
	return s
}

// pause waits for about d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(jitter(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
