package preflight

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestForbidden: each permission for itself, with what the others can be told of.
func TestForbidden(t *testing.T) {
	for _, tt := range []struct {
		op   gcstest.Op
		perm string
		ok   []string
	}{
		{gcstest.Create, permCreate, []string{permGet, "objects.list"}},
		{gcstest.Get, permGet, []string{permCreate, permUpdate, permDelete}},
		{gcstest.Update, permUpdate, []string{permCreate, permGet, permDelete}},
	} {
		t.Run(tt.perm, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.forbid(tt.op, "storage."+tt.perm)
				report := w.run()
				w.want(report, tt.perm, Fail, "needs storage."+tt.perm,
					"gcloud storage buckets add-iam-policy-binding gs://jobs --member=MEMBER --role=roles/storage.objectUser")
				for _, name := range tt.ok {
					w.want(report, name, OK)
				}
				if !strings.HasSuffix(report.Verdict("gs://jobs/lock"), "before the finding marked FAIL is mended") {
					w.Error(report.Verdict("gs://jobs/lock"))
				}
				w.wantNothingLeft(report)
			})
		})
	}
}

// TestLostReply: a create that was made, as its second attempt finds, is no
// refusal.
func TestLostReply(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(gcstest.Fault{Op: gcstest.Create, Times: 1, Do: gcstest.LoseReply()})
		report := w.run()
		w.want(report, permCreate, OK)
		w.want(report, "caching", OK)
		if !report.Fit() {
			w.Error(report.dump())
		}
		w.wantNothingLeft(report)
	})
}

// TestNoSettings: what the bucket's settings would tell shows at the probe.
func TestNoSettings(t *testing.T) {
	inWorld(t, func(w *world) {
		w.forbidSettings()
		report := w.run()
		w.want(report, "settings", Unknown, "storage.buckets.get", "roles/storage.legacyBucketReader")
		if !report.Fit() || !strings.Contains(report.Verdict("gs://x/y"), "one thing could not be looked at") {
			w.Error(report.Verdict("gs://x/y"))
		}
		w.wantNothingLeft(report)
	})
	inWorld(t, func(w *world) {
		w.forbidSettings()
		w.server.CreateBucket("jobs", gcstest.Retention(time.Hour))
		report := w.run()
		w.want(report, permDelete, Fail, "retention policy", "--clear-retention-period")
		if left := w.objects(); len(left) != 1 || len(report.Left) != 1 || left[0] != report.Left[0] {
			w.Errorf("left %v, told %v", left, report.Left)
		}
	})
}

// TestNoProbeWhereItWouldStay: a policy that is seen in time leaves nothing.
func TestNoProbeWhereItWouldStay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(*world)
	}{
		{"retention policy", func(w *world) { w.server.CreateBucket("jobs", gcstest.Retention(time.Hour)) }},
		{"default hold", func(w *world) { w.settings["defaultEventBasedHold"] = true }},
	} {
		inWorld(t, func(w *world) {
			tt.prepare(w)
			report := w.run()
			w.want(report, tt.name, Fail)
			w.want(report, permCreate, Unknown, "could not be deleted again")
			w.want(report, permGet, OK)
			if _, ops := w.requests(); ops[gcstest.Create] > 0 {
				w.Errorf("requests %v", ops)
			}
			w.wantNothingLeft(report)
		})
	}
}

// TestAbsentIsHidden: Cloud Storage answers 403 for what is not there to those who
// may not list.
func TestAbsentIsHidden(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(gcstest.Fault{Op: gcstest.Get, Object: object, Do: gcstest.Forbid("storage.objects.get")})
		deleted := false
		w.server.Inject(gcstest.Fault{
			Match: func(r *http.Request) bool {
				deleted = deleted || r.Method == http.MethodDelete
				return deleted && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/o/")
			},
			Do: gcstest.Forbid("storage.objects.get"),
		})
		report := w.run()
		w.want(report, "objects.list", Fail, "storage.objects.list", "roles/storage.objectUser")
		w.want(report, permGet, OK)
		w.want(report, "preconditions", Unknown)
		w.wantNothingLeft(report)
	})
}

// TestLockObjectHidden: probes tell nothing of what is bound to the very name.
func TestLockObjectHidden(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(gcstest.Fault{Op: gcstest.Get, Object: object, Do: gcstest.Forbid("storage.objects.get")})
		report := w.run()
		w.want(report, "lock object", Fail, "needs permission storage.objects.get", "roles/storage.objectUser")
		w.want(report, permGet, OK)
		if report.Readable {
			w.Error("read, it says")
		}
	})
}

// TestNoAnswer: a permission is not what is missing.
func TestNoAnswer(t *testing.T) {
	for says, do := range map[string]gcstest.Action{"unexpected EOF": gcstest.DropRequest(), "HTTP 503": gcstest.FailStatus(503)} {
		inWorld(t, func(w *world) {
			w.server.Inject(gcstest.Fault{Op: gcstest.Create, Do: do})
			report := w.run()
			w.want(report, permCreate, Fail, says, "did not get through")
			w.wantNothingLeft(report)
		})
	}
}

// TestNoListing is a warning: the lock itself does not list.
func TestNoListing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(gcstest.Fault{
			Match: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/o") && r.Method == http.MethodGet },
			Do:    gcstest.Forbid("storage.objects.list"),
		})
		report := w.run()
		w.want(report, "objects.list", Warn, "storage.objects.list", "roles/storage.objectUser")
		if !report.Fit() {
			w.Error(report.dump())
		}
	})
}

// TestIgnoredPreconditions: a stand-in that is not strict is found out.
func TestIgnoredPreconditions(t *testing.T) {
	inWorld(t, func(w *world) {
		client := stripped(w)
		target := w.target()
		target.Bucket = client.Bucket("jobs")
		report, err := Run(w.Context(), target)
		if err != nil {
			w.Fatal(err)
		}
		w.want(report, "preconditions", Fail, "update: ifMetagenerationMatch", "gcslock emulator --bucket jobs")
		w.wantNothingLeft(report)
	})
}

// TestCaching: a server that drops Cache-Control is told of.
func TestCaching(t *testing.T) {
	inWorld(t, func(w *world) {
		r := &run{Target: w.target()}
		r.caching("public, max-age=3600")
		w.want(&r.Report, "caching", Warn, `became "public, max-age=3600"`)
	})
}
