package leases

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// TestShutDown: cancel, wait for fn under a lease that is kept alive, release.
func TestShutDown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("a", Config{}), w.start("b", Config{})
		reason := errors.New("SIGTERM")
		ctx, cancel := context.WithCancelCause(context.WithValue(a.ctx, leaseKey{}, "not ours"))
		a.Go(ctx, "a", func(ctx context.Context) error {
			<-ctx.Done()
			if context.Cause(ctx) != reason {
				t.Errorf("cause %v, want that of Run's context", context.Cause(ctx))
			}
			time.Sleep(5 * time.Minute) // it has much to put away
			return nil
		})
		j := newJournal(t)
		time.Sleep(time.Minute)
		b.Go(b.ctx, "a", j.worker(b, "a", 0))
		time.Sleep(time.Minute)
		cancel(reason)
		for range 4 {
			time.Sleep(time.Minute)
			a.is("a", Stopping)
			if s := b.is("a", Following); s.Holder != a.HolderID() {
				t.Errorf("the follower says that %q leads", s.Holder)
			}
			obj, ok := w.object("a")
			if !ok || time.Since(obj.Updated) > 25*time.Second {
				t.Errorf("the lease is not kept alive: object there %v, last renewed %v ago", ok, time.Since(obj.Updated))
			}
		}
		says(t, a.Wait(10*time.Second), `"a"`, "gs://jobs/workers/a", "stopping since", "kept alive", "10s")
		if n := a.log.lines("level=WARN", "ignores its cancelled context", "kept alive", "SIGTERM"); n < 10 {
			t.Errorf("%d lines about a worker that ignores its context:\n%s", n, a.log)
		}
		if err := a.Wait(2 * time.Minute); err != nil {
			t.Error(err)
		}
		if s := a.is("a", Stopped); s.LastError != "" {
			t.Errorf("status %+v of a worker that was shut down", s)
		}
		time.Sleep(25 * time.Second)
		b.is("a", Leading)
		b.shutDown()
		if _, ok := w.object("a"); ok {
			t.Error("not released")
		}
	})
}

// TestBlackout: as long as the validity it is a loss, and fn has stopped before
// anybody else starts; the instance follows after it.
func TestBlackout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("a", Config{}), w.start("b", Config{})
		j := newJournal(t)
		var cause error
		var lost time.Time
		a.Go(a.ctx, "a", func(ctx context.Context) error {
			j.enter(a, "a", Token(ctx))
			defer j.leave(a, "a")
			<-ctx.Done()
			cause, lost = context.Cause(ctx), time.Now()
			return nil // which is not "done"
		})
		time.Sleep(5 * time.Minute)
		b.Go(b.ctx, "a", j.worker(b, "a", 0))
		time.Sleep(time.Minute)
		cut := w.server.Inject(gcstest.Fault{Client: "a", Do: gcstest.DropRequest()})
		began := time.Now()
		time.Sleep(2 * time.Minute)
		a.is("a", Following)
		if !errors.Is(cause, gcslock.ErrLockAbandoned) {
			t.Errorf("cause %v, want ErrLockAbandoned", cause)
		}
		if d := lost.Sub(began); d < 30*time.Second || d > 54*time.Second {
			t.Errorf("lost %v into the blackout, want after the validity of 54 s since the last renewal", d)
		}
		if s := j.last("a"); s.who != b {
			t.Error("the other one did not start")
		}
		cut.Remove()
		time.Sleep(time.Minute)
		if s := a.is("a", Following); s.Holder != b.HolderID() || !strings.Contains(s.LastError, "abandoned") || !strings.Contains(s.LastError, "gs://jobs/workers/a") {
			t.Errorf("status after a loss: %+v", s)
		}
		b.shutDown()
		time.Sleep(25 * time.Second)
		a.is("a", Leading)
		a.shutDown()
	})
}

// TestShortBlackout is none of the worker's business.
func TestShortBlackout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		j := newJournal(t)
		a.Go(a.ctx, "a", j.worker(a, "a", 0))
		time.Sleep(time.Minute)
		cut := w.server.Inject(gcstest.Fault{Do: gcstest.DropRequest()})
		time.Sleep(30 * time.Second)
		cut.Remove()
		time.Sleep(time.Minute)
		if a.is("a", Leading); len(j.starts["a"]) != 1 {
			t.Errorf("started %d times", len(j.starts["a"]))
		}
		a.shutDown()
	})
}

// TestIgnoresLoss: fn that goes on after a loss has no lease to renew, is
// reported, and is not run beside itself.
func TestIgnoresLoss(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		running, runs := 0, 0
		a.Go(a.ctx, "a", func(ctx context.Context) error {
			runs++
			if running++; running > 1 {
				t.Error("runs beside itself")
			}
			defer func() { running-- }()
			if runs == 1 {
				time.Sleep(10 * time.Minute)
				return nil
			}
			return untilCancelled(ctx)
		})
		time.Sleep(time.Minute)
		w.server.Delete(testBucket, "workers/a")
		time.Sleep(5 * time.Minute)
		s := a.is("a", Lost)
		if s.Token == 0 || !strings.Contains(s.LastError, "deleted") {
			t.Errorf("status %+v, want the token and why", s)
		}
		if _, ok := w.object("a"); ok {
			t.Error("a lost lease came back")
		}
		if n := a.log.lines("level=ERROR", "ignores its cancelled context", "another instance may run it"); n < 10 {
			t.Errorf("%d lines about it:\n%s", n, a.log)
		}
		says(t, a.Wait(0), "lost since", "another instance may run it")
		time.Sleep(4*time.Minute + time.Second) // it returns in the last second
		if a.is("a", Leading); runs != 2 {
			t.Errorf("ran %d times", runs)
		}
		a.shutDown()
	})
}

// TestLostWhileStopping: the state says so, although the context was cancelled
// for another reason.
func TestLostWhileStopping(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		a.Go(a.ctx, "a", func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(2 * time.Minute)
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		a.stop()
		a.is("a", Stopping)
		w.server.Delete(testBucket, "workers/a")
		time.Sleep(time.Minute)
		if s := a.is("a", Lost); !strings.Contains(s.LastError, "deleted") {
			t.Errorf("status %+v", s)
		}
		if err := a.Wait(2 * time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// TestEndedContext: nothing is run, and nothing asked.
func TestEndedContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		a.stop()
		for _, m := range []*Manager{a.Manager, NewManager(nil, "", Config{}, quiet)} {
			m.Run(a.ctx, "a", func(context.Context) error { t.Error("ran"); return nil })
		}
		if n := len(w.server.Requests()); n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestWonAsContextEnds: the lease is released and the worker not run, whether
// the reply is lost by that or not.
func TestWonAsContextEnds(t *testing.T) {
	t.Run("reply arrives", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.start("a", Config{})
			a.log.then = func(line string) {
				if strings.Contains(line, "lock acquired") {
					a.stop()
				}
			}
			a.Run(a.ctx, "a", func(context.Context) error { t.Error("ran"); return nil })
			if _, ok := w.object("a"); ok || a.ctx.Err() == nil {
				t.Error("not released, or never won")
			}
		})
	})
	t.Run("reply is cut off", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.start("a", Config{})
			b := gcstest.NewBarrier()
			w.server.Inject(gcstest.Fault{Op: gcstest.Create, Do: gcstest.HoldReply(b)})
			a.Go(a.ctx, "a", func(context.Context) error { t.Error("ran"); return nil })
			if err := b.Arrived(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			a.shutDown()
			if _, ok := w.object("a"); ok {
				t.Error("not released")
			}
		})
	})
}

// TestFailsToStop: what a worker returns when it is shut down is told, unless it
// is that it was shut down.
func TestFailsToStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		a.Go(a.ctx, "a", func(ctx context.Context) error { <-ctx.Done(); return errTest })
		a.Go(a.ctx, "b", untilCancelled)
		time.Sleep(time.Minute)
		a.shutDown()
		if s := a.is("a", Stopped); s.LastError != errTest.Error() {
			t.Errorf("status %+v", s)
		}
		if n := a.log.lines("level=WARN", "worker=a", "stopped with an error", errTest.Error()); n != 1 {
			t.Errorf("%d lines:\n%s", n, a.log)
		}
		if s := a.is("b", Stopped); s.LastError != "" || a.log.lines("worker=b", "stopped with an error") != 0 {
			t.Errorf("status %+v", s)
		}
	})
}
