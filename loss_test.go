package gcslock

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestOutageLongerThanTTL: the holder is told in time, by its own clock, and
// what it lost stays lost.
func TestOutageLongerThanTTL(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{"refused": gcstest.FailStatus(503), "dead network": gcstest.Hang()} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				began := time.Now()
				lease := w.machine("a").acquire()
				outage := w.server.Inject(gcstest.Fault{Do: fault})
				<-lease.Context().Done()
				took(t, "notice of the loss", began, 54*time.Second, 54*time.Second)
				isLoss(t, "the cause", context.Cause(lease.Context()))
				says(t, lease.Err(), "gs://jobs/nightly/lock", "validity of 54s")
				outage.Remove()
				w.server.ResetRequests()
				w.lost(lease)
				time.Sleep(time.Hour)
				if got := w.ops(""); got != "" {
					t.Errorf("a lost lease still sends %q", got)
				}
				isLoss(t, "Release", lease.Release(t.Context()))
				if got := w.ops(""); got != "delete" {
					t.Errorf("the release of a lost lease sends %q, want one delete", got)
				}
			})
		})
	}
}

// TestObjectLost: somebody deletes or replaces the object under the holder.
func TestObjectLost(t *testing.T) {
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
				began := time.Now()
				<-lease.Context().Done()
				took(t, "notice", began, 4*time.Second, 20*time.Second)
				w.lost(lease)
				says(t, lease.Err(), want)
				before := w.ops("")
				isLoss(t, "Release", lease.Release(t.Context()))
				if got := w.ops(""); got != before {
					t.Errorf("a release that can delete nothing sent %q after %q", got, before)
				}
				if _, ok := w.object(); ok != (name == "replaced") {
					t.Error("the holder re-created its object, or removed its successor's")
				}
			})
		})
	}
}

// TestSuspend: the clock that goes on in suspend jumps, the monotonic one and
// the timers do not.
func TestSuspend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		time.Sleep(time.Second)
		a.clock.suspend(53 * time.Second)
		began := time.Now()
		isLoss(t, "Err at once", lease.Err())
		took(t, "Err", began, 0, 0)
		w.lost(lease)
	})
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		time.Sleep(time.Second)
		a.clock.suspend(time.Hour)
		began := time.Now()
		<-lease.Context().Done()
		took(t, "notice without a call", began, 0, 6*time.Second)
		w.lost(lease)
	})
	// Shorter than the validity: the overdue refresh follows within a tenth of
	// the ttl.
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		time.Sleep(time.Second)
		a.clock.suspend(40 * time.Second)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := w.count(gcstest.Update); n != 1 {
			t.Errorf("%d refreshes within a tenth of the ttl after waking up, want 1", n)
		}
		if left := time.Until(lease.Expires().Add(-40 * time.Second)); left < 48*time.Second {
			t.Errorf("%v left after the refresh", left)
		}
		w.release(lease)
	})
}

// TestWallClockSteps change nothing for a holder.
func TestWallClockSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.machine("a")
			lease := a.acquire()
			for range 10 {
				time.Sleep(10 * time.Second)
				a.clock.step(step)
			}
			time.Sleep(10 * time.Minute)
			if err := lease.Err(); err != nil {
				t.Errorf("lost by steps of %v: %v", step, err)
			}
			w.release(lease)
		})
	}
}

// TestLateReply: the refresh was applied, but by the time that its reply is
// looked at the validity it was to renew has ended. Lost is lost.
func TestLateReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire(WithManualRefresh())
		reply := gcstest.NewBarrier()
		w.inject(gcstest.Update, 1, gcstest.HoldReply(reply))
		go func() {
			w.arrived(reply)
			a.clock.suspend(54 * time.Second)
			reply.Release()
		}()
		isLoss(t, "Refresh", lease.Refresh(t.Context()))
		w.lost(lease)
		// The release knows the version that the late reply told.
		isLoss(t, "Release", lease.Release(t.Context()))
		if _, ok := w.object(); ok {
			t.Error("the release did not delete the version that it knows")
		}
	})
}

// TestMaxRefreshFailures counts refreshes in a row, not attempts.
func TestMaxRefreshFailures(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh(), WithTTL(time.Hour), WithRefreshInterval(10*time.Second), WithMaxRefreshFailures(1))
		for range 3 { // a success in between starts the count again
			outage := w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
			err := lease.Refresh(t.Context())
			says(t, err, "503")
			if lease.Err() != nil {
				t.Fatalf("lost by one failure: %v", lease.Err())
			}
			outage.Remove()
			if err := lease.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		_ = lease.Refresh(t.Context())
		err := lease.Refresh(t.Context())
		isLoss(t, "the second failure in a row", err)
		says(t, err, "2 refreshes failed in a row", "503")
		w.lost(lease)
	})
	// The automatic refresher counts its turns in the same way.
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		lease := w.machine("a").acquire(WithTTL(time.Hour), WithRefreshInterval(10*time.Second), WithMaxRefreshFailures(2))
		w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
		<-lease.Context().Done()
		// The first turn comes after 2 to 10 s, and each takes 10 s.
		took(t, "three turns", began, 32*time.Second, 41*time.Second)
		w.lost(lease)
	})
}

func TestMaxHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		lease := w.machine("a").acquire(WithMaxHold(10 * time.Minute))
		<-lease.Context().Done()
		took(t, "the hold", began, 10*time.Minute, 10*time.Minute)
		says(t, context.Cause(lease.Context()), "longer than 10m0s", "WithMaxHold")
		w.lost(lease)
		if _, ok := w.object(); !ok {
			t.Fatal("the object was deleted under work that may still run")
		}
		n := w.count(gcstest.Update)
		isLoss(t, "Release", lease.Release(t.Context()))
		if _, ok := w.object(); ok || w.count(gcstest.Update) != n {
			t.Error("refreshed after the end, or not deleted by the release")
		}
	})
}

// TestMaxHoldUnderRefreshInterval: a hold shorter than what a lease must have
// left to be handed out is no reason to throw every lease away. Found by the
// simulator: Acquire created, refreshed and deleted the object for ever.
func TestMaxHoldUnderRefreshInterval(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Create, 1, gcstest.DelayReply(2*time.Second))
		lease := w.machine("a").acquire(WithMaxHold(time.Second))
		if got := w.ops(""); got != "create" {
			t.Errorf("the requests are %q, want one create", got)
		}
		began := time.Now()
		<-lease.Context().Done()
		took(t, "the hold", began, time.Second, time.Second)
		isLoss(t, "Release", lease.Release(t.Context()))
	})
}

// A lookClock keeps whoever looks waiting for an hour, at one look of the many.
type lookClock struct {
	*testClock
	at    int64
	looks atomic.Int64
}

func (c *lookClock) now() reading {
	if c.looks.Add(1) == c.at {
		time.Sleep(time.Hour)
	}
	return c.testClock.now()
}

// TestStoppedAtAnyLook: wherever Acquire is interrupted, a lease that it returns
// all the same is lost, and says so once. Found by the simulator: between the
// start of the timers and the hand-over it was not logged.
func TestStoppedAtAnyLook(t *testing.T) {
	for at := int64(1); !t.Failed(); at++ {
		var looks int64
		inWorld(t, func(t *testing.T, w *world) {
			log := newLog()
			m := w.machine("a")
			l := m.lock(WithLogger(log.logger))
			c := &lookClock{testClock: m.clock, at: at}
			l.clock = c
			lease, err := l.Acquire(t.Context())
			if err != nil {
				t.Fatalf("stopped at look %d: %v", at, err)
			}
			looks = c.looks.Load()
			lost, reported := lease.Err() != nil, len(log.lines("lock lost"))
			if lost && reported != 1 || !lost && reported != 0 {
				t.Errorf("stopped at look %d: lost is %v, reported %d times", at, lost, reported)
			}
			if err := lease.Release(t.Context()); lost {
				isLoss(t, "Release", err)
			}
		})
		if looks < at {
			break
		}
	}
}

// TestLossIsReportedOnce: the first reason stands.
func TestLossIsReportedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		log := newLog()
		lease := w.machine("a").acquire(WithLogger(log.logger))
		first := lease.lose(&lossError{reason: "first"})
		if second := lease.lose(&lossError{reason: "second"}); second != first || lease.Err() != first || context.Cause(lease.Context()) != first {
			t.Errorf("the second loss is %v, Err %v", second, lease.Err())
		}
		log.only(t, "lock lost")
	})
}
