package leases

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
)

// A Manager runs workers, each of them on one instance at a time. A program has
// one, for all of its workers. It is safe for concurrent use.
type Manager struct {
	settings
	cfg     Config // usable
	bucket  *storage.BucketHandle
	prefix  string // empty, or with a slash at its end
	holder  string
	invalid error // what is wrong with the input of NewManager; nothing runs then

	mu      sync.Mutex         // guards workers
	workers map[string]*worker // the last one of each name
}

// NewManager returns a manager whose lock objects are called PREFIX/NAME. It
// sends no request. The bucket handle is used as it is and never closed; it may
// be nil where cfg is not enabled. A prefix with a slash at its end means the
// same as without, and an empty one means NAME alone.
//
// Timings that are set and unusable are replaced, see [Config], with a warning
// in the log. A prefix or an option that is unusable is an error in the log,
// and no worker runs.
func NewManager(bucket *storage.BucketHandle, prefix string, cfg Config, opts ...Option) *Manager {
	s, err := newSettings(opts)
	m := &Manager{
		settings: s,
		cfg:      cfg.usable(),
		bucket:   bucket,
		holder:   newHolderID(),
		workers:  make(map[string]*worker),
	}
	m.logger = cmp.Or(m.logger, slog.Default())
	if prefix != "" {
		m.prefix = strings.TrimSuffix(prefix, "/") + "/"
		err = errors.Join(err, checkPath("prefix", strings.TrimSuffix(prefix, "/")))
	}
	if m.invalid = err; err != nil {
		m.logger.Error("no worker will run", "error", err)
	}
	if u := m.cfg; cmp.Or(cfg.TTL, u.TTL) != u.TTL || cmp.Or(cfg.RenewInterval, u.RenewInterval) != u.RenewInterval {
		m.logger.Warn("unusable timings of the workers' leases are replaced",
			"ttl", cfg.TTL, "renewInterval", cfg.RenewInterval, "ttlUsed", u.TTL, "renewIntervalUsed", u.RenewInterval)
	}
	return m
}

// newHolderID is HOST/PID/random.
func newHolderID() string {
	host, _ := os.Hostname() // empty where the system does not know
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails, see its documentation
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), hex.EncodeToString(id))
}

// HolderID is HOST/PID/random, the owner label of this manager's lock objects:
// unique to the process, also where a restarted container has its predecessor's
// host name and process id, and to the manager within it.
func (m *Manager) HolderID() string { return m.holder }

// Enabled tells whether the workers are kept on one instance, as in [Config].
func (m *Manager) Enabled() bool { return m.cfg.Enabled }

// register makes the worker known, or tells why it will never run, in the log
// and in Status.
func (m *Manager) register(ctx context.Context, name string, fn func(context.Context) error) (w *worker, ok bool) {
	w = m.newWorker(name)
	err := errors.Join(m.invalid, checkPath("worker name", name))
	if fn == nil {
		err = errors.Join(err, errors.New("worker function is nil"))
	}
	if err == nil && m.cfg.Enabled {
		w.lock, err = m.newLock(w)
	}

	if err != nil {
		err = fmt.Errorf("leases: worker %q will not run: %w", name, err)
		w.failed(err)
		w.stopped()
	}

	m.mu.Lock()
	running := m.workers[name]
	twice := running != nil && running.runs()
	if !twice {
		m.workers[name] = w
	}
	m.mu.Unlock()

	if twice {
		err = fmt.Errorf("leases: worker %q is running in this manager already, and the second Run of it was refused: use another name", name)
		running.failed(err)
	}
	if err != nil {
		w.log.ErrorContext(ctx, "worker refused", "error", err)
	}
	return w, err == nil
}

// newLock is the worker's lock.
func (m *Manager) newLock(w *worker) (*gcslock.Lock, error) {
	opts := []gcslock.Option{
		gcslock.WithTTL(m.cfg.TTL),
		gcslock.WithRefreshInterval(m.cfg.RenewInterval),
		gcslock.WithWait(shortestPause, m.cfg.RenewInterval),
		gcslock.WithStandby(w.look),
		gcslock.WithOwner(m.holder),
		gcslock.WithOperation("worker " + w.name),
		gcslock.WithLogger(m.logger.With("worker", w.name)),
	}
	for _, o := range m.observers {
		opts = append(opts, gcslock.WithObserver(o))
	}
	return gcslock.New(m.bucket, m.prefix+w.name, opts...)
}

// checkPath refuses what makes object names that people can't read, or that
// tools take for something else. What Cloud Storage refuses is left to package
// gcslock.
func checkPath(what, path string) error {
	if path == "" {
		return fmt.Errorf("%s is empty", what)
	}
	for _, part := range strings.Split(path, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("%s %q has an empty part, or one that is . or .., between its slashes", what, path)
		}
	}
	if i := strings.IndexFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		return fmt.Errorf("%s %q has a character that is not printable", what, path)
	}
	return nil
}

// Wait waits until all workers have stopped and released, for up to timeout. It
// stops none: that is what the context of Run and Go is for. Its error names
// those that have not stopped, and those whose lease could not be released, for
// which other instances wait until the ttl is over.
//
// A worker that has not stopped keeps its lease alive. End the process after
// an error, and the lease ends with it, a ttl later.
func (m *Manager) Wait(timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		running := m.running()
		if len(running) == 0 {
			return m.unreleased()
		}
		select {
		case <-running[0].done:
		case <-timer.C:
			return m.notStopped(timeout)
		}
	}
}

// all are the workers by name.
func (m *Manager) all() []*worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*worker
	for _, w := range m.workers {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *worker) int { return strings.Compare(a.name, b.name) })
	return all
}

func (m *Manager) running() []*worker {
	return slices.DeleteFunc(m.all(), func(w *worker) bool { return !w.runs() })
}

// notStopped is Wait's error after its time.
func (m *Manager) notStopped(timeout time.Duration) error {
	var late []string
	for _, w := range m.running() {
		s := w.status()
		late = append(late, fmt.Sprintf("%q (%s)", w.name, s.describe()))
	}
	if len(late) == 0 { // the last one has stopped just now
		return m.unreleased()
	}
	err := fmt.Errorf("leases: not stopped within %v: %s", timeout, strings.Join(late, ", "))
	return errors.Join(err, m.unreleased())
}

// unreleased is the error about those that have stopped and could not release.
func (m *Manager) unreleased() error {
	var errs []error
	for _, w := range m.all() {
		if err := w.releaseError(); err != nil {
			errs = append(errs, fmt.Errorf("leases: worker %q: %w", w.name, err))
		}
	}
	return errors.Join(errs...)
}
