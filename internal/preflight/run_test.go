package preflight

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestFit: nothing to object to, nothing left, and as many requests as the help
// and docs/check.md say.
func TestFit(t *testing.T) {
	inWorld(t, func(w *world) {
		report := w.run()
		for _, f := range report.Findings {
			if f.State != OK {
				w.Errorf("%s is %s: %s", f.Name, f.State, f.Seen)
			}
		}
		want := map[gcstest.Op]int{gcstest.Create: 14, gcstest.Update: 14, gcstest.Get: 23, gcstest.Delete: 18, gcstest.Other: 3}
		if all, ops := w.requests(); all != 72 || !maps.Equal(ops, want) {
			w.Errorf("%d requests: %v", all, ops)
		}
		if got := report.Verdict("gs://jobs/lock"); got != "gs://jobs/lock can be relied on, with a ttl of 3s or more" {
			w.Error(got)
		}
		if report.Holder != nil || !report.Readable {
			w.Errorf("held by %v, readable %v", report.Holder, report.Readable)
		}
		w.wantNothingLeft(report)
	})
}

// TestHeldLock is told of, and only read.
func TestHeldLock(t *testing.T) {
	inWorld(t, func(w *world) {
		before := w.server.Put("jobs", object, gcstest.Object{Metadata: map[string]string{
			"owner": "somebody", "nonce": "n", "ttl": "1m0s", "expires-at": time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano),
		}})
		report := w.run()
		if report.Holder == nil || report.Holder.Owner != "somebody" {
			w.Errorf("holder is %v", report.Holder)
		}
		for _, r := range w.server.Requests() {
			if r.Object == object && r.Op != gcstest.Get {
				w.Errorf("%s %s", r.Method, r.URL)
			}
		}
		after, ok := w.server.Object("jobs", object)
		if !ok || after.Generation != before.Generation || after.Metageneration != before.Metageneration {
			w.Errorf("the lock object was %+v and is %+v", before, after)
		}
		if left := w.objects(); !slices.Equal(left, []string{"gs://jobs/" + object}) {
			w.Errorf("left %v", left)
		}
	})
}

// TestVersionedBucket: no noncurrent copies are left.
func TestVersionedBucket(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.CreateBucket("jobs", gcstest.Versioned())
		report := w.run()
		w.want(report, "versioning", Warn, "gcloud storage buckets update gs://jobs --no-versioning")
		if !report.Fit() || !strings.Contains(report.Verdict("gs://x/y"), "see the warning") {
			w.Error(report.Verdict("gs://x/y"))
		}
		w.wantNothingLeft(report)
	})
}

// TestNoVerdict: storage that is out of reach has no findings.
func TestNoVerdict(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   gcstest.Action
		says string
	}{
		{"no network", gcstest.DropRequest(), "unexpected EOF"},
		{"no credentials", gcstest.FailStatus(http.StatusUnauthorized), "credentials are missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.server.Inject(gcstest.Fault{Do: tt.do})
				if _, err := Run(w.Context(), w.target()); err == nil || !strings.Contains(err.Error(), tt.says) {
					w.Errorf("error %v, want one with %q", err, tt.says)
				}
			})
		})
	}
	t.Run("no bucket", func(t *testing.T) {
		inWorld(t, func(w *world) {
			target := w.target()
			target.Bucket = w.client.Bucket("nowhere")
			if _, err := Run(w.Context(), target); err == nil || !strings.Contains(err.Error(), "bucket does not exist") {
				w.Error(err)
			}
		})
	})
}

// TestLeavesNothing: whichever request fails, and however, or ends the check.
// What it does leave where a delete is refused, it names.
func TestLeavesNothing(t *testing.T) {
	var all int
	inWorld(t, func(w *world) { w.run(); all, _ = w.requests() })
	for _, tt := range []struct {
		name   string
		action gcstest.Action
	}{
		{"reply lost", gcstest.LoseReply()},
		{"refused", gcstest.FailStatus(http.StatusForbidden)},
		{"signal", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for n := 0; n < all; n += stride {
				inWorld(t, func(w *world) {
					ctx := w.Context()
					if tt.action != nil {
						w.server.Inject(gcstest.Fault{Skip: n, Times: 1, Do: tt.action})
					} else {
						var stop func()
						ctx, stop = w.cancelAt(n)
						defer stop()
					}
					report, err := Run(ctx, w.target())
					if tt.action == nil && !errors.Is(err, context.Canceled) {
						w.Errorf("request %d: error %v", n, err)
					}
					w.wantNothingLeft(report)
					if w.Failed() {
						w.Fatalf("request %d, error %v:\n%s", n, err, report.dump())
					}
				})
			}
		})
	}
}

// TestDeleteRefused leaves one object, and says which.
func TestDeleteRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.forbid(gcstest.Delete, "storage.objects.delete")
		report := w.run()
		left := w.objects()
		if len(left) != 1 || !slices.Equal(left, report.Left) {
			w.Errorf("left %v, told %v", left, report.Left)
		}
		w.want(report, "objects.delete", Fail, "needs storage.objects.delete", "--member=MEMBER --role=roles/storage.objectUser")
		w.want(report, "left behind", Warn, left[0], "gcloud storage rm "+left[0])
		w.want(report, "preconditions", Unknown)
		w.want(report, "latency", Unknown)
	})
}

// TestLongName: the probes' names are as long as names may be, and no longer.
func TestLongName(t *testing.T) {
	inWorld(t, func(w *world) {
		target := w.target()
		target.Object = strings.Repeat("é", 512)
		report, err := Run(w.Context(), target)
		if err != nil || !report.Fit() {
			w.Errorf("error %v:\n%s", err, report.dump())
		}
		for _, r := range w.server.Requests() {
			if len(r.Object) > 1024 || !strings.HasPrefix(r.Object, strings.Repeat("é", 460)) && r.Object != "" {
				w.Errorf("name of %d bytes: %q", len(r.Object), r.Object)
			}
		}
		w.wantNothingLeft(report)
	})
}

// TestClock is a warning where it misleads.
func TestClock(t *testing.T) {
	for _, tt := range []struct {
		offset time.Duration
		state  State
		says   string
	}{
		{time.Second, OK, "agrees with the server's"},
		{5 * time.Second, OK, "5s behind the server's"},
		{-time.Hour, Warn, "1h0m0s ahead of the server's"},
	} {
		inWorld(t, func(w *world) {
			w.offset = tt.offset
			w.want(w.run(), "clock", tt.state, tt.says)
		})
	}
}

// TestShellWord: names are anything but line breaks.
func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"gs://jobs/a-b_c.1": "gs://jobs/a-b_c.1",
		"gs://jobs/a b":     "'gs://jobs/a b'",
		"gs://jobs/$(x)'":   `'gs://jobs/$(x)'\'''`,
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
