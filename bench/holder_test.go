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

// A takeover is when a lock expired and when it was acquired.
type takeover struct{ expired, at time.Time }

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
			takeovers <- takeover{watch.holder.Updated.Add(watch.holder.TTL), at}
		})
	}
	go func() {
		all.Wait()
		close(takeovers)
	}()
	return takeovers
}

// A takeoverWatch is a log handler that keeps whose lock was taken over.
type takeoverWatch struct{ holder gcslock.Info }

func (w *takeoverWatch) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "took over a stale lock" {
		r.Attrs(func(a slog.Attr) bool {
			if holder, ok := a.Value.Any().(gcslock.Info); ok {
				w.holder = holder
			}
			return true
		})
	}
	return nil
}

func (w *takeoverWatch) Enabled(context.Context, slog.Level) bool { return true }
func (w *takeoverWatch) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *takeoverWatch) WithGroup(string) slog.Handler            { return w }
