package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/gcslock/gcslock"
)

// TestLocker: of two instances each run of the job is on exactly one, also where
// the job takes no time and one clock is two seconds behind; which is what a lock
// that ends with the job would not do, see the second half.
func TestLocker(t *testing.T) {
	for hold, wantTwice := range map[time.Duration]bool{30 * time.Second: false, 0: true} {
		inWorld(t, func(t *testing.T, w *world) {
			var lockers []*Locker
			var schedulers []gocron.Scheduler
			for _, name := range []string{"a", "b"} {
				bucket, _ := w.bucket()
				l := NewLocker(bucket, "cron", hold, gcslock.WithOwner(name))
				task := l.Task("report", func(context.Context) error { w.run(name); return nil })
				schedulers = append(schedulers, w.start(task, gocron.WithDistributedLocker(l)))
				lockers = append(lockers, l)
				time.Sleep(2 * time.Second)
			}
			time.Sleep(20*interval - 4*time.Second + interval/2)
			for i, s := range schedulers {
				w.shutDown(s)
				lockers[i].Close()
			}
			if wantTwice {
				if who := w.who(); who[1] != "a b" {
					t.Errorf("without a hold the first tick was run by %q", who[1])
				}
				return
			}
			w.once(1, 20)
			if _, err := inspect(w, "cron/report"); !errors.Is(err, gcslock.ErrNotHeld) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

func inspect(w *world, object string) (*gcslock.Info, error) {
	w.Helper()
	bucket, _ := w.bucket()
	l, err := gcslock.New(bucket, object)
	if err != nil {
		w.Fatal(err)
	}
	return l.Inspect(w.Context())
}

// TestLongJob: a job that takes longer than its interval runs once at a time,
// over all instances.
func TestLongJob(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		running := 0
		var schedulers []gocron.Scheduler
		for _, name := range []string{"a", "b"} {
			bucket, _ := w.bucket()
			l := NewLocker(bucket, "cron", interval/2)
			schedulers = append(schedulers, w.start(l.Task("report", func(ctx context.Context) error {
				w.mu.Lock()
				running++
				if running > 1 {
					t.Error("two at once")
				}
				w.mu.Unlock()
				w.run(name)
				select {
				case <-ctx.Done(): // gocron does not let time pass while it waits for its jobs to end
				case <-time.After(interval + interval/4):
				}
				w.mu.Lock()
				running--
				w.mu.Unlock()
				return nil
			}), gocron.WithDistributedLocker(l)))
			defer l.Close()
			time.Sleep(time.Second)
		}
		time.Sleep(20*interval + interval/2)
		for _, s := range schedulers {
			w.shutDown(s)
		}
		if n := len(w.runs); n < 9 {
			t.Errorf("%d runs in 20 intervals, want one in two", n)
		}
	})
}

// TestLockerCutOff: a job whose lock is lost is told, with the cause, before the
// lock can be somebody else's; the other instance goes on when the ttl is over.
func TestLockerCutOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bucket, network := w.bucket()
		first := NewLocker(bucket, "cron", 0)
		told := make(chan error, 1)
		a := w.start(first.Task("report", func(ctx context.Context) error {
			w.run("a")
			network.cut.Store(true)
			<-ctx.Done()
			told <- context.Cause(ctx)
			return ctx.Err()
		}), gocron.WithDistributedLocker(first))
		time.Sleep(time.Second)
		bucket, _ = w.bucket()
		second := NewLocker(bucket, "cron", 0)
		b := w.start(second.Task("report", func(context.Context) error { w.run("b"); return nil }), gocron.WithDistributedLocker(second))
		cause := <-told
		if took := time.Since(w.began); !errors.Is(cause, gcslock.ErrLockAbandoned) || took > 2*interval {
			t.Errorf("told of %v after %v", cause, took)
		}
		time.Sleep(3 * interval)
		w.shutDown(a)
		w.shutDown(b)
		first.Close()
		second.Close()
		synctest.Wait()
		if who := w.who(); len(who) < 5 || who[1] != "a" || who[2] == "a" || who[3] != "b" || who[4] != "b" {
			t.Errorf("run by %q, want a, and b as soon as the ttl is over", who)
		}
	})
}

// TestObjectNames: jobs without a name have that of their function.
func TestObjectNames(t *testing.T) {
	l := NewLocker(nil, "cron", 0)
	for job, want := range map[string]string{
		"report":                     "cron/report",
		"example.com/jobs.(*T).Work": "cron/example.com%2Fjobs.%28%2AT%29.Work",
		"line\nbreak":                "cron/line%0Abreak",
	} {
		if got := l.object(job); got != want {
			t.Errorf("the object of %q is %q, want %q", job, got, want)
		}
	}
}
