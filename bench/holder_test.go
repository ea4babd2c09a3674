package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gcslock/gcslock"
)

// A holderSetting is what a process is told that holds leases until it ends.
type holderSetting struct {
	URL    string
	Leases int
	TTL    time.Duration
}

// hold acquires the locks, says so, and holds them until stdin ends.
func hold(text string) error {
	var setting holderSetting
	if err := json.Unmarshal([]byte(text), &setting); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := newSite(ctx, setting.URL)
	if err != nil {
		return err
	}
	for i := range setting.Leases {
		lock, err := gcslock.New(s.bucket, objectName(i), gcslock.WithTTL(setting.TTL))
		if err != nil {
			return err
		}
		if _, err := lock.Acquire(ctx); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A takeover is when a lock expired, when its waiter could prove that it was stale, and
// when that waiter had it.
type takeover struct{ expired, provable, at time.Time }

// waitForAll has a waiter for each lock, and closes the channel after the last.
func waitForAll(b *testing.B, s site, locks int) <-chan takeover {
	b.Helper()
	takeovers := make(chan takeover, locks)
	var all sync.WaitGroup
	for i := range locks {
		watch := &takeoverWatch{}
		lock, err := gcslock.New(s.bucket, objectName(i), gcslock.WithLogger(slog.New(watch)))
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			lease, err := lock.Acquire(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			at := time.Now()
			if err := lease.Release(b.Context()); err != nil {
				b.Error(err)
			}
			takeovers <- watch.takeover(at)
		})
	}
	go func() {
		all.Wait()
		close(takeovers)
	}()
	return takeovers
}

// A takeoverWatch is a log handler that keeps whose lock was taken over, and when its
// last refresh was first seen.
type takeoverWatch struct {
	holder gcslock.Info
	seen   time.Time
}

func (w *takeoverWatch) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		holder, ok := a.Value.Any().(gcslock.Info)
		if ok && holder.Updated != w.holder.Updated {
			w.holder, w.seen = holder, time.Now()
		}
		return !ok
	})
	return nil
}

// takeover is what the waiter knows who has the lock now.
func (w *takeoverWatch) takeover(at time.Time) takeover {
	// Stale by having been watched unchanged, or by the server's clock.
	provable := w.seen.Add(w.holder.TTL)
	if w.holder.StaleAfter.Before(provable) {
		provable = w.holder.StaleAfter
	}
	return takeover{w.holder.Updated.Add(w.holder.TTL), provable, at}
}

func (w *takeoverWatch) Enabled(context.Context, slog.Level) bool { return true }
func (w *takeoverWatch) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *takeoverWatch) WithGroup(string) slog.Handler            { return w }
