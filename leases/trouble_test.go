package leases

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

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
