package main

import (
	"context"
	"errors"
	"fmt"
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
	fmt.Printf("%d processes for %v, ttl %v to %v, seed %d, in %v\n",
		r.processes, r.duration, r.ttl, r.longestTTL(), r.seed, time.Since(began).Round(time.Second))
	fmt.Print(sum)
	fmt.Printf("about %d requests in %d connections, %d of them reset, %d held up\n",
		r.server.requests.Load(), r.tally.connections.Load(), r.tally.resets.Load(), r.tally.stalls.Load())
	fmt.Printf("free %v after the end\n%d violations\n", freed.Round(time.Millisecond), len(found))
	if len(found) == 0 {
		return nil
	}
	keep = true
	for _, v := range found[:min(len(found), 20)] {
		fmt.Println("VIOLATED:", v)
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

// torture has the workers run through the trouble and leave, and then takes the
// lock itself, and tells how long that took.
func (r *run) torture(ctx context.Context, path string) (freed time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var procs sync.WaitGroup
	defer procs.Wait()
	defer cancel()

	r.server.file = filepath.Join(r.directory, "objects")
	if err := r.server.start(ctx); err != nil {
		return 0, err
	}
	defer r.server.counting.Wait()
	defer r.server.stop()
	if err := r.makeSlots(path); err != nil {
		return 0, err
	}
	watched, closer, err := newHolder(path)
	if err != nil {
		return 0, err
	}
	defer closer.Close()

	calm, cancelCalm := context.WithTimeout(ctx, r.duration)
	defer cancelCalm()
	leave, cancelLeave := context.WithCancel(ctx)
	defer cancelLeave()
	var mu sync.Mutex // guards failures
	var failures []error
	background := func(group *sync.WaitGroup, f func() error) {
		group.Go(func() {
			if err := f(); err != nil {
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
				cancel()
			}
		})
	}
	var troubles sync.WaitGroup
	for _, s := range r.slots {
		background(&procs, func() error { return s.run(ctx, leave) })
	}
	t := &trouble{slots: r.slots, chance: r.random(1), holder: watched}
	background(&troubles, func() error { return t.run(calm) })
	background(&troubles, func() error { return r.server.trouble(ctx, calm, r.random(2), r.ttl, r.journal) })
	troubles.Wait()
	for _, s := range r.slots {
		s.proxy.calm.Store(true)
	}
	cancelLeave()
	procs.Wait()
	for _, s := range r.slots {
		s.proxy.close() // what is under way arrives now, or never
	}
	if err := errors.Join(failures...); err != nil || ctx.Err() != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	return r.acquire(ctx)
}

func (r *run) random(n uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed, n)) }

func (r *run) makeSlots(path string) error {
	for i := range r.processes {
		p, err := newProxy(r.server.address, r.seed<<16+uint64(i), &r.tally)
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
	return time.Since(began), lease.Release(ctx)
}
