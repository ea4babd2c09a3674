package fenced

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestClaimReplyLost: applied, not applied, and applied later.
func TestClaimReplyLost(t *testing.T) {
	for name, tt := range map[string]struct {
		fault gcstest.Action
		want  string
	}{
		"applied":     {gcstest.LoseReply(), "get update get"},
		"failed late": {gcstest.GarbleReply(), "get update get"},
		"not applied": {gcstest.DropRequest(), "get update get update"},
		"applied yet": {gcstest.Withhold(), "get update get update"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put("0")
				a := w.acquire("a")
				fault := w.inject("a", gcstest.Update, 1, tt.fault)
				o := a.open()
				if got := w.ops("a"); got != tt.want {
					t.Errorf("Open is %q, want %q", got, tt.want)
				}
				for _, status := range fault.Deliver() {
					if status != 412 {
						t.Errorf("the late claim got %d", status)
					}
				}
				w.must(o.Write(w.ctx, []byte("a")))
				w.holds("a")
			})
		})
	}
}

// TestWriteReplyLost: a look tells what became of a write.
func TestWriteReplyLost(t *testing.T) {
	for name, tt := range map[string]struct {
		fault gcstest.Action
		want  string
	}{
		"applied":     {gcstest.LoseReply(), "create get"},
		"garbled":     {gcstest.GarbleReply(), "create get"},
		"not applied": {gcstest.DropRequest(), "create get create"},
		"applied yet": {gcstest.Withhold(), "create get create"},
		"unavailable": {gcstest.FailStatus(503), "create get create"},
		"too often":   {gcstest.FailStatus(429), "create create"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put("0")
				o := w.acquire("a").open()
				w.server.ResetRequests()
				fault := w.inject("a", gcstest.Create, 1, tt.fault)
				w.must(o.Write(w.ctx, []byte("a")))
				if got := w.ops("a"); got != tt.want {
					t.Errorf("the write is %q, want %q", got, tt.want)
				}
				for _, status := range fault.Deliver() {
					if status != 412 {
						t.Errorf("the late write got %d", status)
					}
				}
				w.holds("a")
				w.server.ResetRequests()
				w.must(o.Write(w.ctx, []byte("b")))
				if got := w.ops("a"); got != "create" {
					t.Errorf("the next write is %q", got)
				}
				w.holds("b")
			})
		})
	}
}

// TestSentTwice: a proxy sends a request again, and its second reply is a 412.
func TestSentTwice(t *testing.T) {
	for name, lost := range map[string]bool{"the lease goes on": false, "the lease ends before the look": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put("0")
				a := w.acquire("a")
				a.bucket = w.bucket("a", func(next http.RoundTripper) http.RoundTripper {
					return roundTripper(func(r *http.Request) (*http.Response, error) {
						if r.Method == http.MethodGet {
							return next.RoundTrip(r)
						}
						body, _ := io.ReadAll(r.Body)
						var response *http.Response
						var err error
						for range 2 {
							r.Body = io.NopCloser(bytes.NewReader(body))
							response, err = next.RoundTrip(r)
						}
						if lost && r.Method == http.MethodPost {
							w.lose()
							_ = a.lease.Verify(w.ctx) // learns of it
						}
						return response, err
					})
				})
				w.must(a.open().Write(w.ctx, []byte("a")))
				if got, want := w.ops("a"), "get update update get create create get"; got != want {
					t.Errorf("it is %q, want %q", got, want)
				}
				w.holds("a")
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// giveUp has a write of "1" given up while the network keeps it.
func (w *world) giveUp(o *Object) *gcstest.Injection {
	w.Helper()
	kept := w.inject("a", gcstest.Create, 0, gcstest.Withhold())
	ctx, cancel := context.WithTimeout(w.ctx, 50*time.Millisecond)
	defer cancel()
	err := o.Write(ctx, []byte("1"))
	w.is(err, []error{ErrUncertain}, "deadline exceeded")
	if !errors.Is(err, context.DeadlineExceeded) {
		w.Errorf("not the context's error: %v", err)
	}
	kept.Remove()
	return kept
}

// TestGivenUpWriteLands: a write that its caller has given up is applied before, or
// after, the next one.
func TestGivenUpWriteLands(t *testing.T) {
	for name, first := range map[string]bool{"before the next": true, "after the next": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put("0")
				o := w.acquire("a").open()
				kept := w.giveUp(o)
				if first {
					kept.Deliver()
					w.holds("1")
				}
				w.must(o.Write(w.ctx, []byte("2")))
				kept.Deliver()
				w.holds("2")
			})
		})
	}
}

// TestUpdateIsAtomic: an earlier write lands between an update's read and its write.
func TestUpdateIsAtomic(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		o := w.acquire("a").open()
		kept := w.giveUp(o)
		calls := 0
		w.must(o.Update(w.ctx, func(old []byte) ([]byte, error) {
			calls++
			kept.Deliver()
			return append(old, 'u'), nil
		}))
		if calls != 2 {
			t.Errorf("fn was called %d times, want 2", calls)
		}
		w.holds("1u")
		failed := errors.New("no")
		if err := o.Update(w.ctx, func([]byte) ([]byte, error) { return nil, failed }); err != failed {
			t.Errorf("an fn that fails: %v", err)
		}
		w.holds("1u")
	})
}

// TestLandedUnderSuccessor: the write was applied, and its holder learns of it when
// the next one has claimed, or has written.
func TestLandedUnderSuccessor(t *testing.T) {
	for name, overwritten := range map[string]bool{"claimed": false, "overwritten": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put("0")
				a := w.acquire("a").open()
				paused := gcstest.NewBarrier()
				w.inject("a", gcstest.Create, 1, gcstest.LoseReply())
				w.inject("a", gcstest.Get, 1, gcstest.Hold(paused))
				write := start(func() error { return a.Write(w.ctx, []byte("a")) })
				w.arrived(paused)
				w.lose()
				b := w.acquire("b").open()
				w.reads(b, "a")
				if overwritten {
					w.must(b.Write(w.ctx, []byte("b")))
				}
				paused.Release()
				if err := <-write; !overwritten {
					w.must(err)
				} else {
					w.is(err, []error{ErrFenced, ErrUncertain}, "not known")
				}
				w.is(a.Write(w.ctx, []byte("again")), []error{ErrFenced})
				w.must(b.Write(w.ctx, []byte("b")))
				w.holds("b")
			})
		})
	}
}

// TestExcludedBySuccessor: the claim of the next holder shows that a write whose reply
// is missing was not applied, and will not be.
func TestExcludedBySuccessor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a").open()
		paused := gcstest.NewBarrier()
		kept := w.inject("a", gcstest.Create, 1, gcstest.Withhold())
		w.inject("a", gcstest.Get, 1, gcstest.Hold(paused))
		write := start(func() error { return a.Write(w.ctx, []byte("a")) })
		w.arrived(paused)
		w.lose()
		b := w.acquire("b").open()
		paused.Release()
		w.is(<-write, []error{ErrFenced})
		if got := kept.Deliver(); len(got) != 1 || got[0] != 412 {
			t.Errorf("delivered late it got %v", got)
		}
		w.reads(b, "0")
	})
}

// TestClaimedBetweenLookAndClaim: an earlier holder's write lands just before the
// claim, which is done again on what the write left.
func TestClaimedBetweenLookAndClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a").open()
		w.lose()
		b := w.acquire("b")
		paused := gcstest.NewBarrier()
		w.inject("b", gcstest.Update, 1, gcstest.Hold(paused))
		opened := start(func() error {
			o, err := Open(w.ctx, b.lease, b.state())
			if err == nil {
				w.reads(o, "a")
			}
			return err
		})
		w.arrived(paused)
		w.must(a.Write(w.ctx, []byte("a")))
		paused.Release()
		w.must(<-opened)
		w.is(a.Write(w.ctx, []byte("again")), []error{ErrFenced})
		w.holds("a")
	})
}

// TestBusyState: one change a second of one object, and more are wanted.
func TestBusyState(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.LimitRate(time.Second)
		o := w.acquire("a").open(WithInitial(nil))
		for range 5 {
			w.must(o.Update(w.ctx, func(old []byte) ([]byte, error) { return append(old, 'x'), nil }))
		}
		w.holds("xxxxx")
	})
}

// TestHungRequests: each ends after its limit, and another is sent.
func TestHungRequests(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		for _, op := range []gcstest.Op{gcstest.Get, gcstest.Update, gcstest.Create} {
			w.inject("a", op, 1, gcstest.Hang())
		}
		began := time.Now()
		w.must(a.open().Write(w.ctx, []byte("a")))
		if took := time.Since(began); took < 3*requestLimit || took > 4*requestLimit {
			t.Errorf("with three requests that hang it took %v", took)
		}
		w.holds("a")
	})
}

// TestRefusals: what cannot succeed ends at once, and names what is missing.
func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		op         gcstest.Op
		permission string
	}{
		"look":  {gcstest.Get, "storage.objects.get"},
		"claim": {gcstest.Update, "storage.objects.update"},
		"write": {gcstest.Create, "storage.objects.create"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put("0")
				a := w.acquire("a")
				w.server.Inject(gcstest.Fault{Client: "a", Op: tt.op, Do: gcstest.Forbid(tt.permission)})
				began := time.Now()
				o, err := Open(w.ctx, a.lease, a.state())
				if err == nil {
					err = o.Write(w.ctx, nil)
				}
				w.is(err, nil, tt.permission)
				if took := time.Since(began); took > 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
	t.Run("verification", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.put("0")
			a := w.acquire("a")
			w.server.Inject(gcstest.Fault{Object: testLock, Op: gcstest.Get, Do: gcstest.Forbid("storage.objects.get")})
			_, err := Open(w.ctx, a.lease, a.state())
			w.is(err, nil, "storage.objects.get", "gs://jobs/nightly/lock")
		})
	})
}

// TestVerificationOutage: the lock cannot be asked for a while.
func TestVerificationOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		w.server.Inject(gcstest.Fault{Object: testLock, Op: gcstest.Get, Times: 10, Do: gcstest.FailStatus(503)})
		w.must(a.open().Write(w.ctx, []byte("a")))
	})
}

// TestLeaseEndsMeanwhile: an outage that outlasts the lease.
func TestLeaseEndsMeanwhile(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		o := a.open()
		w.server.Inject(gcstest.Fault{Do: gcstest.FailStatus(503)})
		began := time.Now()
		w.is(o.Write(w.ctx, []byte("a")), []error{ErrFenced, ErrUncertain}, "not refreshed")
		if took := time.Since(began); took != 54*time.Second {
			t.Errorf("the write went on for %v, want 54s", took)
		}
	})
}
