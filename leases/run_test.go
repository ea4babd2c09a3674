package leases

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
		ctx, cancel = context.WithCancel(t.Context())
		m.Go(ctx, "a", func(context.Context) error { time.Sleep(time.Minute); return nil })
		synctest.Wait()
		cancel()
		synctest.Wait()
		says(t, m.Wait(time.Second), "without a lease, stopping since", "has not returned")
		if err := m.Wait(time.Minute); err != nil {
			t.Error(err)
		}
	})
}
