package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
)

const (
	bucket = "torture"
	object = "lock"
)

// A workerPlan is what the parent tells a worker.
type workerPlan struct {
	Process string // slot and life
	Server  string // host and port
	Journal string
	Seed    uint64
	TTL     time.Duration
	Reclaim bool // its label is its slot's, and it takes over what the slot left
	Verbose bool
}

// newBucket is the bucket through a client with the storage client's own
// transport, as users have it.
func newBucket(ctx context.Context, server string) (*storage.BucketHandle, error) {
	client, err := storage.NewClient(ctx, option.WithEndpoint("http://"+server+"/storage/v1/"), option.WithoutAuthentication())
	if err != nil {
		return nil, fmt.Errorf("storage client: %w", err)
	}
	return client.Bucket(bucket), nil
}

type worker struct {
	workerPlan
	journal
	lock   *gcslock.Lock
	chance *rand.Rand

	lossTold int64 // the token of the last lease whose loss is in the journal
}

// work takes sections until stdin ends, and one after that if it had none.
func work(plan workerPlan) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any end of it is the end
		cancel()
	}()
	handle, err := newBucket(ctx, plan.Server)
	if err != nil {
		return err
	}
	j, err := openJournal(plan.Journal)
	if err != nil {
		return err
	}
	defer j.file.Close()
	w := &worker{workerPlan: plan, journal: j, chance: rand.New(rand.NewPCG(plan.Seed, 0))}
	opts := []gcslock.Option{
		gcslock.WithTTL(plan.TTL), gcslock.WithOwner(plan.Process),
		gcslock.WithWait(20*time.Millisecond, 500*time.Millisecond),
		gcslock.WithLogger(slog.New(w.logHandler())),
	}
	if plan.Reclaim {
		opts = append(opts, gcslock.WithOwner("worker "+slotOf(plan.Process)), gcslock.WithReclaim())
	}
	if w.lock, err = gcslock.New(handle, object, opts...); err != nil {
		return err
	}
	for had := 0; ctx.Err() == nil || had == 0; {
		wait := ctx
		if had == 0 {
			wait = context.Background()
		}
		if w.turn(ctx, wait) {
			had++
		}
	}
	return nil
}

// turn is one try at the lock, in one of three ways, and tells whether there
// was a section. wait bounds the acquisition; when ctx ends the section does.
func (w *worker) turn(ctx, wait context.Context) bool {
	wait, cancel := context.WithTimeout(wait, w.TTL+w.upTo(4*w.TTL))
	defer cancel()
	switch w.chance.IntN(4) {
	case 0:
		lease, err := w.lock.TryAcquire(wait)
		if err != nil {
			w.pause(wait, w.upTo(w.TTL/4))
			return false
		}
		had := w.section(ctx, lease)
		w.released(lease, lease.Release(wait))
		return had
	case 1:
		return w.do(ctx, wait)
	}
	lease, err := w.lock.Acquire(wait)
	if err != nil {
		w.expectEndedWait(err)
		return false
	}
	had := w.section(ctx, lease)
	w.released(lease, lease.Release(wait))
	return had
}

// do is a turn by Do. Its context is not the one that bounds the wait: its end
// would end the section.
func (w *worker) do(ctx, wait context.Context) (had bool) {
	work, cancel := context.WithCancel(context.WithoutCancel(wait))
	defer cancel()
	gaveUp := context.AfterFunc(wait, cancel)
	var lease *gcslock.Lease
	err := w.lock.Do(work, func(_ context.Context, l *gcslock.Lease) error {
		gaveUp()
		lease = l
		had = w.section(ctx, l)
		return nil
	})
	if lease == nil {
		w.expectEndedWait(err)
		return false
	}
	w.released(lease, err)
	return had
}

// expectEndedWait: whatever the network does, only its context ends a wait.
func (w *worker) expectEndedWait(err error) {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		w.tell(wrong, 0, 0, fmt.Sprintf("a wait ended with %v", err))
	}
}

func (w *worker) tell(what string, token int64, expires time.Duration, text string) {
	w.write(line{machineTime(), what, w.Process, token, expires, text})
}

// pause sleeps, or less if ctx ends.
func (w *worker) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (w *worker) upTo(d time.Duration) time.Duration { return time.Duration(w.chance.Int64N(int64(d))) }

// logHandler writes takeovers, which the library tells its log alone, into the
// journal, and prints warnings where that is asked for.
func (w *worker) logHandler() slog.Handler {
	out := slog.DiscardHandler
	if w.Verbose {
		out = slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}).
			WithAttrs([]slog.Attr{slog.String("process", w.Process)})
	}
	return takeoverHandler{out, w}
}

type takeoverHandler struct {
	slog.Handler
	worker *worker
}

func (h takeoverHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h takeoverHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "took over a stale lock" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "generation" {
				h.worker.tell(takesOver, a.Value.Int64(), 0, "")
			}
			return true
		})
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
