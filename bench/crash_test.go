package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gcslock/gcslock"
)

// crashed is how many locks the process that is killed holds.
const crashed = 20

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

func objectName(i int) string { return fmt.Sprintf("lock-%d", i) }

// BenchmarkCrash is the end of a wait for a holder that was killed, with a waiter
// that was there before or came after.
func BenchmarkCrash(b *testing.B) {
	for _, before := range []bool{true, false} {
		name := "waiter=before"
		if !before {
			name = "waiter=after"
		}
		b.Run(name, func(b *testing.B) {
			const ttl = 6 * time.Second
			url := startServer(b, serverSetting{})
			holder := startProcess(b, beHolder, holderSetting{URL: url, Leases: crashed, TTL: ttl})
			holder.line(b)
			kill := func() {
				if err := holder.cmd.Process.Kill(); err != nil {
					b.Fatal(err)
				}
				_ = holder.cmd.Wait() // killed
			}
			if !before {
				kill()
			}
			s, err := newSite(b.Context(), url)
			if err != nil {
				b.Fatal(err)
			}
			waits := waitForAll(b, s)
			if before {
				// Some refreshes later: each lock is then somewhere between two.
				time.Sleep(ttl)
				s.requests.Store(0)
				kill()
			}
			var after []float64
			began := time.Now()
			for range crashed {
				after = append(after, (<-waits).Seconds())
			}
			took := time.Since(began).Seconds()
			slices.Sort(after)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(after[len(after)/2], "after-expiry-median-s")
			b.ReportMetric(after[len(after)-1], "after-expiry-worst-s")
			// Without the delete, the create and the release.
			b.ReportMetric((float64(s.requests.Load())/crashed-3)/took, "looks/s")
		})
	}
}

// waitForAll has a waiter for each lock, and gives for each how long after its
// expiry it was acquired: after the ttl since the last refresh, that is, by the
// machine's one clock.
func waitForAll(b *testing.B, s site) <-chan time.Duration {
	b.Helper()
	waits := make(chan time.Duration, crashed)
	var waiting sync.WaitGroup
	for i := range crashed {
		watch := &takeoverWatch{}
		lock, err := gcslock.New(s.bucket, objectName(i), gcslock.WithLogger(watch.logger()))
		if err != nil {
			b.Fatal(err)
		}
		waiting.Add(1)
		go func() {
			waiting.Done()
			lease, err := lock.Acquire(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			waits <- time.Since(watch.expired())
			if err := lease.Release(b.Context()); err != nil {
				b.Error(err)
			}
		}()
	}
	waiting.Wait()
	return waits
}

// A takeoverWatch is a log handler that keeps whose lock was taken over.
type takeoverWatch struct{ holder gcslock.Info }

func (w *takeoverWatch) logger() *slog.Logger { return slog.New(w) }

func (w *takeoverWatch) expired() time.Time { return w.holder.Updated.Add(w.holder.TTL) }

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
