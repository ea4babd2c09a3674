package leases

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// TestRunEndsWithNil: a worker that is done releases, and Run returns.
func TestRunEndsWithNil(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.start("a", Config{})
		runs := 0
		i.Run(i.ctx, "a", func(ctx context.Context) error {
			runs++
			obj, ok := w.object("a")
			if !ok || Token(ctx) != obj.Generation || Token(ctx) == 0 {
				t.Errorf("token %d, object %d", Token(ctx), obj.Generation)
			}
			if obj.Metadata["owner"] != i.HolderID() {
				t.Errorf("owner %q, want %q", obj.Metadata["owner"], i.HolderID())
			}
			i.is("a", Leading)
			return nil
		})
		if _, ok := w.object("a"); ok || runs != 1 {
			t.Errorf("ran %d times, object there: %v", runs, ok)
		}
		if s := i.is("a", Stopped); s.LastError != "" || s.Token != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// TestErrorMeansAgain: after a RenewInterval, and with the lease released in
// between.
func TestErrorMeansAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.start("a", Config{})
		var starts []time.Time
		i.Run(i.ctx, "a", func(context.Context) error {
			if starts = append(starts, time.Now()); len(starts) == 3 {
				return nil
			}
			time.AfterFunc(10*time.Second, func() {
				if _, ok := w.object("a"); ok {
					t.Error("a worker that failed keeps its lease")
				}
				if s := i.is("a", Following); !strings.Contains(s.LastError, errTest.Error()) || s.LastErrorAt.IsZero() {
					t.Errorf("status %+v does not show the failure", s)
				}
			})
			return errTest
		})
		for n, at := range starts[1:] {
			if d := at.Sub(starts[n]); d < 20*time.Second || d > 23*time.Second {
				t.Errorf("ran again after %v, want about 20s", d)
			}
		}
		if n := i.log.lines("level=ERROR", "worker=a", errTest.Error()); n != 2 {
			t.Errorf("%d lines about two failures:\n%s", n, i.log)
		}
	})
}

// TestShutDown: cancel, wait for fn under a lease that is kept alive, release.
func TestShutDown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("a", Config{}), w.start("b", Config{})
		reason := errors.New("SIGTERM")
		ctx, cancel := context.WithCancelCause(context.WithValue(a.ctx, tokenKey{}, "not ours"))
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
		time.Sleep(5 * time.Minute)
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

// TestPanic releases, and goes on. So does the end of the goroutine.
func TestPanic(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic(errTest) },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.start("a", Config{})
				var value any
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { value = recover() }()
					a.Run(a.ctx, "a", func(context.Context) error { end(); return nil })
					t.Error("it did not go on")
				}()
				<-done
				if name == "panic" && value != errTest {
					t.Errorf("recovered %v", value)
				}
				if _, ok := w.object("a"); ok {
					t.Error("not released")
				}
				if s := a.is("a", Stopped); !strings.Contains(s.LastError, "panicked") {
					t.Errorf("status %+v", s)
				}
				if err := a.Wait(0); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestDisabled: the worker runs at once and without storage, here without a
// bucket, and all the rest is the same.
func TestDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(nil, "workers", Config{}, quiet)
		if m.Enabled() {
			t.Error("enabled")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		runs := 0
		began := time.Now()
		m.Run(ctx, "once", func(ctx context.Context) error {
			if runs++; Token(ctx) != 0 {
				t.Errorf("token %d", Token(ctx))
			}
			if runs == 1 {
				return errTest
			}
			return nil
		})
		if d := time.Since(began); runs != 2 || d < 20*time.Second || d > 22*time.Second {
			t.Errorf("ran %d times in %v, want again after an interval", runs, d)
		}
		m.Go(ctx, "a", untilCancelled)
		synctest.Wait()
		if s := m.Status(); len(s) != 2 || s[0].Name != "a" || s[0].State != Leading || s[0].Object != "" {
			t.Errorf("status %+v", s)
		}
		says(t, m.Wait(time.Second), `"a"`, "without a lease", "leading since")
		cancel()
		if err := m.Wait(time.Second); err != nil {
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

// TestNoPermission: told, tried again once in an interval, and mended.
func TestNoPermission(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		denied := w.server.Inject(gcstest.Fault{Op: gcstest.Create, Do: gcstest.Forbid("storage.objects.create")})
		var started atomic.Bool
		a.Go(a.ctx, "a", func(ctx context.Context) error { started.Store(true); return untilCancelled(ctx) })
		time.Sleep(10*time.Minute + time.Second)
		if n := w.count("a", gcstest.Create); n < 27 || n > 31 {
			t.Errorf("%d creates in ten minutes, want one in 20 s", n)
		}
		if s := a.is("a", Following); !strings.Contains(s.LastError, "storage.objects.create") || time.Since(s.LastErrorAt) > 23*time.Second {
			t.Errorf("status %+v", s)
		}
		if n := a.log.lines("level=ERROR", "worker=a", "storage.objects.create", "gs://jobs/workers/a"); n < 27 {
			t.Errorf("%d lines:\n%s", n, a.log)
		}
		denied.Remove()
		time.Sleep(23 * time.Second)
		if !started.Load() {
			t.Error("not started with the permission")
		}
		a.shutDown()
	})
}

// TestNoPermissionToRelease: Wait tells.
func TestNoPermissionToRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		w.server.Inject(gcstest.Fault{Op: gcstest.Delete, Do: gcstest.Forbid("storage.objects.delete")})
		a.Go(a.ctx, "a", untilCancelled)
		time.Sleep(time.Minute)
		a.stop()
		says(t, a.Wait(time.Minute), `"a"`, "gs://jobs/workers/a", "storage.objects.delete", "others wait until")
		if s := a.is("a", Stopped); !strings.Contains(s.LastError, "storage.objects.delete") {
			t.Errorf("status %+v", s)
		}
		if n := a.log.lines("level=ERROR", "could not be released", "storage.objects.delete"); n != 1 {
			t.Errorf("%d lines:\n%s", n, a.log)
		}
	})
}

// TestOutage: a follower that can't look asks ever more rarely, tells in the log
// and in Status since when it does not know, and is back soon after.
func TestOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("a", Config{}), w.start("b", Config{})
		a.Go(a.ctx, "a", untilCancelled)
		time.Sleep(time.Second)
		b.Go(b.ctx, "a", untilCancelled)
		time.Sleep(10 * time.Minute)
		began := time.Now()
		cut := w.server.Inject(gcstest.Fault{Client: "b", Do: gcstest.DropRequest()})
		w.server.ResetRequests()
		time.Sleep(time.Hour)
		if n := len(w.server.Requests()) - w.count("a", gcstest.Update); n < 180 || n > 900 {
			t.Errorf("%d requests in an outage of an hour", n)
		}
		if s := b.is("a", Following); s.HolderSeen.After(began) || s.HolderSeen.Before(began.Add(-25*time.Second)) {
			t.Errorf("status %+v, the outage began at %v", s, began)
		}
		if n := b.log.lines("level=WARN", "request failed", "worker=a", "gs://jobs/workers/a"); n < 180 {
			t.Errorf("%d lines about the outage:\n%s", n, b.log)
		}
		cut.Remove()
		time.Sleep(25 * time.Second)
		if s := b.is("a", Following); time.Since(s.HolderSeen) > 25*time.Second {
			t.Errorf("status %+v after the outage", s)
		}
		a.shutDown()
		b.shutDown()
	})
}

// TestForeignObject: what keeps the worker out for ever is told once.
func TestForeignObject(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Put(testBucket, "workers/a", gcstest.Object{})
		a := w.start("a", Config{})
		a.Go(a.ctx, "a", untilCancelled)
		time.Sleep(time.Hour)
		if s := a.is("a", Following); !strings.Contains(s.LastError, "gs://jobs/workers/a") || !strings.Contains(s.LastError, "never expires") {
			t.Errorf("status %+v", s)
		}
		if n := a.log.lines("level=ERROR", "never expires"); n != 1 {
			t.Errorf("%d lines:\n%s", n, a.log)
		}
		w.server.Delete(testBucket, "workers/a")
		time.Sleep(25 * time.Second)
		a.is("a", Leading)
		a.shutDown()
	})
}

// TestReleasedBetweenChanges: Cloud Storage may refuse the create that comes
// within a second of the delete; the follower does not wait an interval then.
func TestReleasedBetweenChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.LimitRate(time.Second)
		a, b := w.start("a", Config{}), w.start("b", Config{})
		a.Go(a.ctx, "a", untilCancelled)
		time.Sleep(time.Hour)
		b.Go(b.ctx, "a", untilCancelled)
		time.Sleep(10 * time.Second)
		a.shutDown()
		time.Sleep(2500 * time.Millisecond)
		b.is("a", Leading)
		b.shutDown()
	})
}
