package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gcslock/gcslock"
)

// A run is one torture.
type run struct {
	processes int
	duration  time.Duration
	seed      uint64
	ttl       time.Duration
	verbose   bool
	out       io.Writer

	directory string
	journal   journal
	server    server
	slots     []*slot
	tally     tally
}

// longestTTL is that of the workers whose number divides by three.
func (r *run) longestTTL() time.Duration { return 2 * r.ttl }

// do runs it. When it returns there is no process of it, and no file but the
// journal of a violation.
func (r *run) do(ctx context.Context) (err error) {
	if r.directory, err = os.MkdirTemp("", "torture"); err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			err = errors.Join(err, os.RemoveAll(r.directory))
		}
	}()
	path := filepath.Join(r.directory, "journal")
	if r.journal, err = openJournal(path); err != nil {
		return err
	}
	defer r.journal.file.Close()

	began := time.Now()
	freed, err := r.torture(ctx, path)
	if err != nil {
		return err
	}
	sum, found, err := judge(path, r.processes)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%d processes for %v, ttl %v to %v, seed %d, in %v\n",
		r.processes, r.duration, r.ttl, r.longestTTL(), r.seed, time.Since(began).Round(time.Second))
	fmt.Fprint(r.out, sum)
	fmt.Fprintf(r.out, "about %d requests in %d connections, %d of them reset, %d held up\n",
		r.server.requests.Load(), r.tally.connections.Load(), r.tally.resets.Load(), r.tally.stalls.Load())
	fmt.Fprintf(r.out, "free %v after the end\n%d violations\n", freed.Round(time.Millisecond), len(found))
	if len(found) == 0 {
		return nil
	}
	keep = true
	for _, v := range found[:min(len(found), 20)] {
		fmt.Fprintln(r.out, "VIOLATED:", v)
	}
	return fmt.Errorf("%d violations; the journal is %s", len(found), path)
}

func judge(path string, workers int) (figures, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return figures{}, nil, err
	}
	defer f.Close()
	lines, torn, err := parse(f)
	if err != nil {
		return figures{}, nil, err
	}
	sum, found := check(lines, torn, workers)
	return sum, found, nil
}

// A group is goroutines of which the first failure ends the run.
type group struct {
	sync.WaitGroup
	fail context.CancelCauseFunc
}

func (g *group) start(f func() error) {
	g.Go(func() {
		if err := f(); err != nil {
			g.fail(err)
		}
	})
}

// torture has the workers run through the trouble and leave, and then takes the
// lock itself, and tells how long that took.
func (r *run) torture(ctx context.Context, path string) (freed time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.server.file = filepath.Join(r.directory, "objects")
	if err := r.server.start(ctx); err != nil {
		return 0, err
	}
	defer r.server.end()
	defer r.closeProxies()
	if err := r.makeSlots(path); err != nil {
		return 0, err
	}
	watched, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer watched.Close()

	calm, cancelCalm := context.WithTimeout(ctx, r.duration)
	defer cancelCalm()
	leave, cancelLeave := context.WithCancel(ctx)
	defer cancelLeave()
	workers, troubles := group{fail: cancel}, group{fail: cancel}
	for _, s := range r.slots {
		workers.start(func() error { return s.run(ctx, leave) })
	}
	t := &trouble{slots: r.slots, chance: r.random(1), holder: newHolder(watched)}
	troubles.start(func() error { return t.run(calm) })
	troubles.start(func() error { return r.server.trouble(ctx, calm, r.random(2), r.ttl, r.journal) })
	troubles.Wait()
	for _, s := range r.slots {
		s.proxy.calm.Store(true)
	}
	cancelLeave()
	workers.Wait()
	r.closeProxies() // what is under way arrives now, or never
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return r.acquire(ctx)
}

func (r *run) closeProxies() {
	for _, s := range r.slots {
		s.proxy.close()
	}
}

func (r *run) random(n uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed, n)) }

func (r *run) makeSlots(path string) error {
	for i := range r.processes {
		p, err := newProxy(r.server.address, anyFate, r.seed<<16+uint64(i), &r.tally)
		if err != nil {
			return err
		}
		r.slots = append(r.slots, &slot{
			number: i + 1, proxy: p, journal: r.journal,
			plan: workerPlan{
				Server: p.address(), Journal: path,
				Seed:    r.seed<<32 + uint64(i)<<16,
				TTL:     r.ttl + r.ttl*time.Duration(i%3)/2,
				Reclaim: i%4 == 3, Verbose: r.verbose,
			},
		})
	}
	return nil
}

// acquire takes and releases the lock after everybody has left. What a killed
// worker left behind holds it until its ttl is over, and no longer.
func (r *run) acquire(ctx context.Context) (time.Duration, error) {
	handle, err := newBucket(ctx, r.server.address())
	if err != nil {
		return 0, err
	}
	lock, err := gcslock.New(handle, object, gcslock.WithTTL(r.ttl), gcslock.WithOwner("parent"),
		gcslock.WithMaxWait(r.longestTTL()+4*time.Second))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	lease, err := lock.Acquire(ctx)
	if err != nil {
		return 0, fmt.Errorf("nobody is left, and the lock is not free: %w", err)
	}
	took := time.Since(began)
	return took, lease.Release(ctx)
}
