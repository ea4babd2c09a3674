package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// infoOf is the library's Info of an object.
func infoOf(o gcstest.Object, updated time.Time, foreign bool) *gcslock.Info {
	attrs := &storage.ObjectAttrs{Metadata: o.Metadata, Updated: updated, Generation: 1, Metageneration: 1}
	if foreign {
		attrs.Metadata = nil
	}
	return gcslock.InfoFrom(attrs)
}

// TestStatus of each kind of lock, in words and in JSON.
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		kind string
		code int
		says []string // in lines of their own, columns by one space
	}{
		{free, exitFree, []string{"lock gs://jobs/p/default.tflock", "state free"}},
		{live, 0, []string{"state live", "owner me", "host box", "pid 4711", "operation nightly import", "metadata team=billing",
			"since 5m", "refreshed 4m", "left 55m", "unless it is refreshed", "break gcslock break gs://jobs/p/default.tflock --id "}},
		{stale, 0, []string{"state stale", "takes it over by itself", "owner me", "refreshed 10m", "left none, it ended 9m", "break gcslock break"}},
		{olderLive, 0, []string{"state live", "owner me", "since 4m", "left 55m"}},
		{olderStale, 0, []string{"state stale", "owner me", "left none"}},
		{fastClock, 0, []string{"state live", "left 55m"}},
		{slowClock, 0, []string{"state stale", "left none"}},
		{foreign, 0, []string{"state foreign", "never expires", "since 4m", "left no end", "payload 6 bytes, text/plain", "break gcslock break"}},
		{terraformOwn, 0, []string{"state foreign", " who jo@box", " operation OperationTypeApply", " version 1.11.4",
			"(2026-12-01T16:00:00Z)", " unlock terraform force-unlock "}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			s := newSite(t)
			const object = "gs://jobs/p/default.tflock"
			id := s.put(tt.kind, "p/default.tflock")
			code, stdout, stderr := s.run("status", object)
			words := strings.Join(strings.FieldsFunc(stdout, func(r rune) bool { return r == ' ' }), " ")
			for _, say := range tt.says {
				if !strings.Contains(words, say) {
					t.Errorf("does not say %q:\n%s", say, stdout)
				}
			}
			if code != tt.code || strings.Contains(stderr, "\x1b") || strings.Contains(stdout, "\x1b") {
				t.Errorf("exit code %d, stderr %q, stdout %q", code, stderr, stdout)
			}
			code, stdout, stderr = s.run("status", "--json", object)
			reports := s.reports(stdout)
			if code != tt.code || len(reports) != 1 || reports[0]["state"] != stateOfLock[tt.kind] || reports[0]["lock"] != object {
				t.Errorf("exit code %d, %v, stderr %q", code, reports, stderr)
			}
			if left, ok := reports[0]["left_seconds"].(float64); ok != (stateOfLock[tt.kind] == stateLive || stateOfLock[tt.kind] == stateStale) || ok && (left < 0) != (stateOfLock[tt.kind] == stateStale) {
				t.Errorf("left: %v", reports[0]["left_seconds"])
			}
			if command, _ := reports[0]["break_command"].(string); tt.kind != free && command != "gcslock break "+object+" --id "+id {
				t.Errorf("to break: %q", command)
			}
		})
	}
}

// TestStatusOfStateLock that gcslock terraform holds: it is a lock like others, with
// Terraform's information, and nobody is told to take it from a run that is alive.
func TestStatusOfStateLock(t *testing.T) {
	s := newStateSite(t, "echo ready; read line")
	p, release := s.startHeld("terraform", "--owner", "ci", stateTarget, "--", "terraform", "apply")
	p.stdout.until("ready")
	const url = "gs://jobs/" + stateLock
	_, stdout, stderr := s.run("status", url)
	words := strings.Join(strings.Fields(stdout), " ")
	for _, say := range []string{
		"state live", "owner ci", "operation terraform apply", "terraform a state lock of Terraform or OpenTofu, held through gcslock",
		"operation OperationTypeApply", "version 9.8.7", "it frees itself 5m0s after a crash", "break gcslock break " + url,
	} {
		if !strings.Contains(words, say) {
			t.Errorf("does not say %q:\n%s", say, stdout)
		}
	}
	if strings.Contains(stdout, "terraform force-unlock") || stderr != "" {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
	lock, _ := s.stateLock()
	if _, stdout, _ := s.run("list", "gs://jobs"); strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, "live   ci") {
		t.Errorf("listed as %q", stdout)
	}
	if code, _, _ := s.run("break", url, "--id", generationText(lock.Generation)); code != exitLocked {
		t.Errorf("break: exit code %d", code)
	}
	release()
	p.wait()
}

// TestTerraformUnreadable: whatever such an object has for content, the lock is
// shown.
func TestTerraformUnreadable(t *testing.T) {
	for name, content := range map[string]string{
		"no JSON": "held by jo", "another shape": `["a"]`, "no ID": `{"Who":"jo"}`, "cut off": `{"ID":"x","Who":"` + strings.Repeat("x", lockInfoLimit) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.server.Put("jobs", "default.tflock", gcstest.Object{Content: []byte(content)})
			code, stdout, stderr := s.run("status", "gs://jobs/default.tflock")
			if code != 0 || !strings.Contains(stdout, "foreign") || !strings.Contains(stderr, "gs://jobs/default.tflock can't be read") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// TestTerraformGone: the object went away before its content was read.
func TestTerraformGone(t *testing.T) {
	s := newSite(t)
	s.put(terraformOwn, "default.tflock")
	s.server.Inject(gcstest.Fault{Op: gcstest.Get, Skip: 1, Do: gcstest.FailStatus(404)})
	if code, _, stderr := s.run("status", "gs://jobs/default.tflock"); code != 0 || !strings.Contains(stderr, "can't be read: it is gone by now") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

// TestNoDate: nothing is said about liveness that is not known, and break has it
// as live.
func TestNoDate(t *testing.T) {
	s := newSite(t)
	id := s.put(stale, "lock")
	s.env = []string{"STORAGE_EMULATOR_HOST=" + s.withoutDate()}
	_, stdout, stderr := s.run("status", "--json", target)
	if r := s.reports(stdout)[0]; r["state"] != stateUnknown || r["left_seconds"] != nil || r["server_time"] != nil {
		t.Errorf("reported %v", r)
	}
	if !strings.Contains(stderr, "Date") {
		t.Errorf("told %q", stderr)
	}
	for _, command := range []string{"status", "list"} {
		args := map[string][]string{"status": {"status", target}, "list": {"list", "gs://jobs"}}[command]
		_, stdout, stderr := s.run(args...)
		if !strings.Contains(stdout, "unknown") || !strings.Contains(stdout, "not known") || strings.Count(stderr, "Date") != 1 {
			t.Errorf("%s: stdout %q, stderr %q", command, stdout, stderr)
		}
	}
	if code, _, stderr := s.run("break", target, "--id", id); code != exitLocked || !strings.Contains(stderr, "--force") {
		t.Errorf("break: exit code %d, stderr %q", code, stderr)
	}
	if code, _, stderr := s.run("break", target, "--id", id, "--force"); code != 0 {
		t.Errorf("break --force: exit code %d, stderr %q", code, stderr)
	}
}

// TestStatusOnStock fake-gcs-server, whose contents are not at Cloud Storage's
// other address for them.
func TestStatusOnStock(t *testing.T) {
	s := newSite(t)
	stock, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		Scheme: "http", Host: "127.0.0.1", NoListener: false, Writer: io.Discard,
		InitialObjects: []fakestorage.Object{{
			ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "jobs", Name: "default.tflock"}, Content: []byte(`{"ID":"x","Who":"jo@box"}`),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stock.Stop)
	s.env = []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(stock.URL(), "http://")}
	if code, stdout, stderr := s.run("status", "gs://jobs/default.tflock"); code != 0 || !strings.Contains(stdout, "jo@box") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
