package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/leases"
)

var quiet = leases.WithLogger(slog.New(slog.DiscardHandler))

// TestElector: the leader runs everything. When it is killed another one takes
// over after the ttl, and when it stops in about a second.
func TestElector(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type instance struct {
			name    string
			elector *Elector
			gocron.Scheduler
			network *network
		}
		var all []instance
		for _, name := range []string{"a", "b", "c"} {
			bucket, network := w.bucket()
			e := NewElector(bucket, "cron", "leader", leases.Config{Enabled: true}, quiet)
			s := w.start(e.Task(func(context.Context) error { w.run(name); return nil }), gocron.WithDistributedElector(e))
			all = append(all, instance{name, e, s, network})
			time.Sleep(time.Second)
		}
		// Not at a tick, all through.
		time.Sleep(5*interval + interval/4)
		if got := w.once(1, 5); !slices.Equal(got, []string{"a"}) {
			t.Errorf("run by %q, want a alone", got)
		}
		all[0].network.cut.Store(true)
		time.Sleep(5 * interval)
		if err := all[0].elector.IsLeader(w.Context()); err == nil {
			t.Error("the one that is cut off still calls itself the leader")
		}
		after := w.once(7, 10) // the ttl is an interval
		if len(after) != 1 || after[0] == "a" {
			t.Errorf("run by %q after the kill, want one of the others", after)
		}
		for _, i := range all[1:] {
			if i.name == after[0] {
				w.shutDown(i)
				if err := i.elector.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		time.Sleep(3 * interval)
		last := w.once(11, 13)
		if len(last) != 1 || last[0] == "a" || last[0] == after[0] {
			t.Errorf("run by %q after the leader has stopped, want the third", last)
		}
		for _, i := range all {
			if i.name != after[0] {
				w.shutDown(i)
				_ = i.elector.Close() // one of them can't release
			}
		}
	})
}

// TestLeaderIsTold: a job under way when the leadership is lost is told.
func TestLeaderIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bucket, network := w.bucket()
		e := NewElector(bucket, "cron", "leader", leases.Config{Enabled: true}, quiet)
		told := make(chan error, 1)
		s := w.start(e.Task(func(ctx context.Context) error {
			network.cut.Store(true)
			<-ctx.Done()
			told <- context.Cause(ctx)
			return ctx.Err()
		}), gocron.WithDistributedElector(e))
		if cause := <-told; !errors.Is(cause, gcslock.ErrLockAbandoned) {
			t.Errorf("told of %v", cause)
		}
		w.shutDown(s)
		_ = e.Close() // it can't release
	})
}
