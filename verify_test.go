package gcslock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestVerify: one read, after which the lease is as it was.
func TestVerify(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		expires := lease.Expires()
		time.Sleep(time.Second)
		w.server.ResetRequests()
		if err := lease.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		if got := w.ops(""); got != "get" {
			t.Errorf("Verify is %q, want one get", got)
		}
		if !lease.Expires().Equal(expires) {
			t.Error("a verification renews the lease")
		}
		w.server.Edit(testBucket, testObject, map[string]string{"note": "edited"})
		if err := lease.Verify(t.Context()); err != nil {
			t.Errorf("an edited lock object is still the lease's: %v", err)
		}
		w.release(lease)
		w.server.ResetRequests()
		if err := lease.Verify(t.Context()); !errors.Is(err, ErrNotHeld) || w.ops("") != "" {
			t.Errorf("of a released lease: %v, after %q", err, w.ops(""))
		}
	})
}

// TestVerifyFindsLoss: what a refresh would find, at once and once.
func TestVerifyFindsLoss(t *testing.T) {
	for _, name := range []string{"deleted", "replaced"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire()
				w.server.Delete(testBucket, testObject)
				want := "its object was deleted"
				if name == "replaced" {
					w.rival()
					want = `it is now held by "rival"`
				}
				err := lease.Verify(t.Context())
				isLoss(t, "Verify", err)
				says(t, err, "gs://jobs/nightly/lock", want)
				isLoss(t, "the cause", context.Cause(lease.Context()))
				w.lost(lease)
				before := w.ops("")
				isLoss(t, "a second Verify", lease.Verify(t.Context()))
				isLoss(t, "Release", lease.Release(t.Context()))
				if got := w.ops(""); got != before {
					t.Errorf("what is known to be lost is asked for again: %q after %q", got, before)
				}
			})
		})
	}
}

// TestVerifyAfterValidity: a lease that is over by the clock stays lost, whatever
// the server says, and is not asked for.
func TestVerifyAfterValidity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		time.Sleep(53 * time.Second)
		slow := w.inject(gcstest.Get, 1, gcstest.DelayReply(2*time.Second))
		began := time.Now()
		isLoss(t, "Verify, whose reply comes too late,", lease.Verify(t.Context()))
		took(t, "it", began, time.Second, time.Second)
		slow.Remove()
		w.server.ResetRequests()
		isLoss(t, "Verify", lease.Verify(t.Context()))
		if got := w.ops(""); got != "" {
			t.Errorf("a lost lease is asked for: %q", got)
		}
		isLoss(t, "Release", lease.Release(t.Context()))
	})
}

// TestVerifyFails: a question that is not answered decides nothing.
func TestVerifyFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault gcstest.Action
		times int
		reads int
		ok    bool
	}{
		{"two failures", gcstest.FailStatus(503), 2, 3, true},
		{"an outage", gcstest.FailStatus(503), 0, 3, false},
		{"a missing permission", gcstest.Forbid("storage.objects.get"), 0, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lease := w.machine("a").acquire()
				w.server.ResetRequests()
				fault := w.inject(gcstest.Get, tt.times, tt.fault)
				err := lease.Verify(t.Context())
				fault.Remove()
				if (err == nil) != tt.ok || errors.Is(err, ErrLockAbandoned) {
					t.Errorf("Verify: %v", err)
				}
				if n := w.count(gcstest.Get); n != tt.reads {
					t.Errorf("%d reads, want %d", n, tt.reads)
				}
				if err != nil {
					says(t, err, "verify", "gs://jobs/nightly/lock")
				}
				if err := lease.Err(); err != nil {
					t.Errorf("the lease ended: %v", err)
				}
				w.release(lease)
			})
		})
	}
	t.Run("the caller's context ends", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			lease := w.machine("a").acquire()
			fault := w.inject(gcstest.Get, 0, gcstest.Hang())
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			isContext(t, lease.Verify(ctx), context.DeadlineExceeded)
			fault.Remove()
			w.release(lease)
		})
	})
}
