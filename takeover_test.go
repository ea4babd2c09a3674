package gcslock

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestCrashedHolder: a waiter that was there before the crash gets in soon
// after the ttl, and not before.
func TestCrashedHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire()
		got := make(chan *Lease)
		go func() { got <- w.machine("b").acquire() }()
		time.Sleep(5 * time.Minute)
		a.crash(lease)
		obj, _ := w.object()
		second := <-got
		took(t, "the take-over, from the last sign of life,", obj.Updated, time.Minute, time.Minute+1100*time.Millisecond)
		w.release(second)
	})
}

// TestWaiterWakesUp when the object may turn out to be stale, whatever its
// pauses are.
func TestWaiterWakesUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.crash(a.acquire())
		began := time.Now()
		lease := w.machine("b").acquire(WithWait(time.Hour, time.Hour))
		took(t, "the take-over", began, time.Minute, time.Minute+time.Millisecond)
		if got := w.ops("b"); got != "create get get delete create" {
			t.Errorf("requests are %q, want one look when it is over", got)
		}
		w.release(lease)
	})
}

// TestLateComer: one that comes long after the crash gets in at once, by the
// server's clock.
func TestLateComer(t *testing.T) {
	for name, do := range map[string]func(*Lock) (*Lease, error){
		"Acquire":    func(l *Lock) (*Lease, error) { return l.Acquire(context.Background()) },
		"TryAcquire": func(l *Lock) (*Lease, error) { return l.TryAcquire(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.machine("a")
				a.crash(a.acquire())
				time.Sleep(63 * time.Second)
				began := time.Now()
				lease, err := do(w.machine("b").lock())
				if err != nil {
					t.Fatal(err)
				}
				took(t, "the take-over", began, 0, 0)
				if got := w.ops("b"); got != "create get delete create" {
					t.Errorf("requests are %q, want create get delete create", got)
				}
				w.release(lease)
			})
		})
	}
}

// TestTTLOfTheHolderCounts, not the competitor's own.
func TestTTLOfTheHolderCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.crash(a.acquire(WithTTL(10 * time.Minute)))
		began := time.Now()
		lease := w.machine("b").acquire(WithTTL(5 * time.Second))
		took(t, "the take-over", began, 10*time.Minute, 10*time.Minute+1100*time.Millisecond)
		w.release(lease)
	})
}

// TestWaiterWithoutDate: as over gRPC, only watching counts, for a whole ttl
// from the first look.
func TestWaiterWithoutDate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.machine("a"), w.machine("b")
		b.between = func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Header.Del("Date")
			}
			return response, err
		}
		a.crash(a.acquire())
		time.Sleep(time.Hour)
		if _, err := b.lock().TryAcquire(t.Context()); !errors.Is(err, ErrLocked) {
			t.Errorf("a try without any clock to go by is %v, want ErrLocked", err)
		}
		began := time.Now()
		lease := b.acquire()
		took(t, "the take-over", began, time.Minute, time.Minute+time.Second)
		w.release(lease)
	})
}

// TestLiveLockIsNotStolen, whatever the clocks say: of the holder, of the
// waiter, of the server.
func TestLiveLockIsNotStolen(t *testing.T) {
	const hour = time.Hour
	for name, prepare := range map[string]func(w *world, holder, waiter *machine){
		"clocks agree":    func(w *world, holder, waiter *machine) {},
		"waiter ahead":    func(w *world, holder, waiter *machine) { waiter.clock.step(hour) },
		"waiter behind":   func(w *world, holder, waiter *machine) { waiter.clock.step(-hour) },
		"holder ahead":    func(w *world, holder, waiter *machine) { holder.clock.step(hour) },
		"holder behind":   func(w *world, holder, waiter *machine) { holder.clock.step(-hour) },
		"waiter suspends": func(w *world, holder, waiter *machine) { time.AfterFunc(hour/8, func() { waiter.clock.suspend(hour) }) },
		"waiter steps":    func(w *world, holder, waiter *machine) { time.AfterFunc(hour/8, func() { waiter.clock.step(hour) }) },
		"server ahead": func(w *world, holder, waiter *machine) {
			w.server.SetClock(func() time.Time { return time.Now().Add(hour) })
		},
		"server behind": func(w *world, holder, waiter *machine) {
			w.server.SetClock(func() time.Time { return time.Now().Add(-hour) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				holder, waiter := w.machine("holder"), w.machine("waiter")
				prepare(w, holder, waiter)
				lease := holder.acquire()
				ctx, cancel := context.WithTimeout(t.Context(), hour/4)
				defer cancel()
				_, err := waiter.lock(WithTTL(3 * time.Second)).Acquire(ctx)
				isHeld(t, err, "holder")
				w.release(lease)
			})
		})
	}
}

// TestDeadLockIsFreed, whatever the clocks say.
func TestDeadLockIsFreed(t *testing.T) {
	for name, step := range map[string]time.Duration{"holder ahead": time.Hour, "holder behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.machine("a")
				a.clock.step(step)
				a.crash(a.acquire())
				began := time.Now()
				lease := w.machine("b").acquire()
				took(t, "the take-over", began, time.Minute, time.Minute+2*time.Second)
				w.release(lease)
			})
		})
	}
}

// TestRefreshBeatsTakeOver: the refresh lands between the judgement and the
// delete, which then names an old version.
func TestRefreshBeatsTakeOver(t *testing.T) {
	for _, name := range []string{"refreshed", "replaced", "gone"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.machine("a")
				a.crash(a.acquire())
				time.Sleep(63 * time.Second)
				hold := gcstest.NewBarrier()
				w.inject(gcstest.Delete, 1, gcstest.Hold(hold))
				go func() {
					w.arrived(hold)
					switch name {
					case "refreshed":
						w.server.Edit(testBucket, testObject, map[string]string{keyRefresh: "new", keyExpiresAt: timestamp(time.Now().Add(time.Minute))})
					case "replaced":
						w.server.Delete(testBucket, testObject)
						w.rival()
					case "gone":
						w.server.Delete(testBucket, testObject)
					}
					hold.Release()
				}()
				lease, err := w.machine("b").lock().TryAcquire(t.Context())
				switch name {
				case "refreshed":
					isHeld(t, err, "a")
					if got := w.ops("b"); got != "create get delete get" {
						t.Errorf("requests are %q, want another look after the delete", got)
					}
				case "replaced":
					isHeld(t, err, "rival")
				case "gone":
					if err != nil {
						t.Fatal(err)
					}
					w.release(lease)
				}
				if _, ok := w.object(); ok != (name != "gone") {
					t.Error("a live object was deleted")
				}
			})
		})
	}
}

// TestTakeOverReplyLost: the delete landed; the read tells.
func TestTakeOverReplyLost(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{"reply lost": gcstest.LoseReply(), "503": gcstest.FailStatus(503), "429": gcstest.FailStatus(429)} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.machine("a")
				a.crash(a.acquire())
				time.Sleep(63 * time.Second)
				w.inject(gcstest.Delete, 1, fault)
				lease, err := w.machine("b").lock().TryAcquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.release(lease)
			})
		})
	}
}

// TestForeignObject holds the lock for ever, until it is broken.
func TestForeignObject(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		foreign := w.server.Put(testBucket, testObject, gcstest.Object{Content: []byte(`{"ID":"x","Who":"me"}`)})
		// Reclaim does not apply to what carries no owner at all.
		lock := w.machine("b").lock(WithReclaim(), WithWait(time.Hour, time.Hour), WithMaxWait(1000*time.Hour))
		_, err := lock.Acquire(t.Context())
		if held := isHeld(t, err, ""); !held.Holder.Foreign || held.Holder.Generation != foreign.Generation {
			t.Errorf("the holder is %+v", held.Holder)
		}
		says(t, err, "no lock of this library and never expires", "generation ")
		if err := lock.Break(t.Context(), foreign.Generation); err != nil {
			t.Fatal(err)
		}
		lease, err := lock.TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.release(lease)
	})
}

// TestEditedByHand: an unreadable expiry is no invitation to steal.
func TestEditedByHand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		w.server.Put(testBucket, testObject, gcstest.Object{Metadata: map[string]string{keyOwner: "somebody", keyExpiresAt: "in a while"}})
		lease := w.machine("b").acquire(WithTTL(5 * time.Minute))
		took(t, "the take-over", began, 5*time.Minute, 5*time.Minute+2*time.Second)
		w.release(lease)
	})
}

// TestOlderFormat: objects of the older library's clients are understood.
func TestOlderFormat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Put(testBucket, testObject, gcstest.Object{Metadata: map[string]string{
			keyOwner: "older", keyExpiresAt: timestamp(time.Now().Add(3 * time.Minute)),
		}})
		began := time.Now()
		lease := w.machine("b").acquire()
		took(t, "the take-over", began, 3*time.Minute+olderAllowance, 3*time.Minute+olderAllowance+2*time.Second)
		w.release(lease)
	})
}

// TestReclaim: the same label, compared exactly, at once. Without the option a
// label is no identity.
func TestReclaim(t *testing.T) {
	for _, tt := range []struct {
		left, mine string
		reclaim    bool
		atOnce     bool
	}{
		{"node-1", "node-1", true, true},
		{"node-10", "node-1", true, false},
		{"node-1", "node-10", true, false},
		{"NODE-1", "node-1", true, false},
		{"node-1", "node-1", false, false},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			left := w.machine(tt.left)
			old := left.acquire()
			left.crash(old)
			opts := []Option{}
			if tt.reclaim {
				opts = append(opts, WithReclaim())
			}
			lease, err := w.machine(tt.mine).lock(opts...).TryAcquire(t.Context())
			if (err == nil) != tt.atOnce {
				t.Errorf("%+v: %v", tt, err)
			}
			if err == nil {
				if lease.Token() == old.Token() {
					t.Errorf("%+v: the old object lives on", tt)
				}
				w.release(lease)
			}
		})
	}
}

// TestTakeOverIsLogged with the reason and whose lock it was.
func TestTakeOverIsLogged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.crash(a.acquire())
		time.Sleep(63 * time.Second)
		log := newLog()
		w.release(w.machine("b").acquire(WithLogger(log.logger)))
		if line := log.only(t, "took over"); !strings.Contains(line, "level=WARN") || !strings.Contains(line, "holder.owner=a") || !strings.Contains(line, "server's clock") {
			t.Errorf("logged %s", line)
		}
	})
}
