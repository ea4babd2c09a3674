package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/internal/preflight"
)

// newSiteWith is newSite whose bucket has these settings and this policy.
func newSiteWith(t *testing.T, settings map[string]any) *site {
	s := newSite(t)
	wrapped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/storage/v1/b/jobs" {
			s.server.ServeHTTP(w, r)
			return
		}
		plain := httptest.NewRecorder()
		s.server.ServeHTTP(plain, r)
		var resource map[string]any
		if err := json.Unmarshal(plain.Body.Bytes(), &resource); err != nil {
			t.Error(err)
		}
		for key, value := range settings {
			resource[key] = value
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(resource); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(wrapped.Close)
	s.env = []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(wrapped.URL, "http://")}
	return s
}

// wantEmpty fails if there is an object that a probe was.
func (s *site) wantEmpty() {
	s.Helper()
	for _, r := range s.server.Requests() {
		if _, ok := s.server.Object("jobs", r.Object); ok {
			s.Errorf("left %s", r.Object)
		}
	}
}

// TestCheck: each exit code, and what is said.
func TestCheck(t *testing.T) {
	softDelete := map[string]any{"softDeletePolicy": map[string]any{"retentionDurationSeconds": "604800", "effectiveTime": "2026-01-01T00:00:00Z"}}
	for _, tt := range []struct {
		name     string
		settings map[string]any
		prepare  func(*site)
		args     []string
		code     int
		stdout   []string
		stderr   string // where there is no verdict
	}{
		{"fit", nil, nil, []string{target}, 0, []string{
			"gs://jobs/lock is free\n", "\nok       preconditions     enforced", "\ngs://jobs/lock can be relied on, with a ttl of 3s or more\n",
		}, ""},
		{"warning", softDelete, nil, []string{target}, 0, []string{
			"\nwarn     soft delete       deleted objects are kept for 7 days\n         each lock",
			"\n         fix: gcloud storage buckets update gs://jobs --clear-soft-delete\n", "; see the warning\n",
		}, ""},
		{"forbidden", nil, forbid("storage.objects.create"), []string{target}, exitUnfit, []string{
			"\nFAIL     objects.create    HTTP 403: ", "\n         needs storage.objects.create\n",
			"\n         fix: gcloud storage buckets add-iam-policy-binding gs://jobs --member=MEMBER --role=roles/storage.objectUser\n",
			"\nMEMBER stands for", "\nunknown  preconditions     not tried",
			"\ngs://jobs/lock can't be relied on before the finding marked FAIL is mended\n",
		}, ""},
		{"held", nil, func(s *site) { s.rival("eve\x1b[31m") }, []string{target}, 0, []string{`gs://jobs/lock is locked by "eve\x1b[31m", `}, ""},
		{"no bucket", nil, nil, []string{"gs://nowhere/lock"}, exitStorage, nil, "gcslock: "},
		{"no argument", nil, nil, nil, exitUsage, nil, "want gs://BUCKET/OBJECT"},
		{"no object", nil, nil, []string{"gs://jobs"}, exitUsage, nil, `"gs://jobs" does not name an object`},
		{"a bad name", nil, nil, []string{"gs://jobs/.."}, exitUsage, nil, `".." is refused by Cloud Storage`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSiteWith(t, tt.settings)
			if tt.prepare != nil {
				tt.prepare(s)
			}
			code, stdout, stderr := s.run(append([]string{"check"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.stderr) || tt.stderr != "" && (strings.Count(stderr, "\n") != 1 || stdout != "") {
				t.Errorf("exit code %d, want %d; stderr %q, want %q", code, tt.code, stderr, tt.stderr)
			}
			for _, text := range tt.stdout {
				if !strings.Contains(stdout, text) {
					t.Errorf("stdout does not say %q:\n%s", text, stdout)
				}
			}
			if code == exitUsage && s.ops() != "" {
				t.Errorf("requests %q", s.ops())
			}
			if tt.name != "held" {
				s.wantEmpty()
			}
		})
	}
}

// TestCheckJSON: all that is documented, and nothing else.
func TestCheckJSON(t *testing.T) {
	s := newSite(t)
	rival := s.rival("somebody")
	forbid("storage.objects.delete")(s)
	code, stdout, _ := s.run("check", "--json", target)
	var got checkJSON
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil || code != exitUnfit {
		t.Fatalf("exit code %d, error %v: %s", code, err, stdout)
	}
	if got.Lock != target || got.Fit || got.Held == nil || !*got.Held || got.Holder == nil ||
		got.Holder.Generation != rival.Generation || len(got.Left) != 1 || !strings.Contains(got.Verdict, "can't be relied on") {
		t.Errorf("%s", stdout)
	}
	states := map[string]preflight.State{}
	for _, f := range got.Findings {
		states[f.Name] = f.State
	}
	if states["objects.delete"] != preflight.Fail || states["objects.create"] != preflight.OK || states["latency"] != preflight.Unknown {
		t.Errorf("%v", states)
	}
}

// TestCheckDocs: the help and the page name each field and each exit code.
func TestCheckDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []any{checkJSON{}, latencyJSON{}, preflight.Finding{}} {
		for field := range fields(form) {
			if !strings.Contains(checkHelp, field) || !strings.Contains(string(page), "`"+field+"`") {
				t.Errorf("the help or the page does not name %q", field)
			}
		}
	}
	_, codes, _ := strings.Cut(checkHelp, "Exit codes:\n")
	for line := range strings.Lines(codes) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), " ")
		if row := "\n| " + code + " | " + strings.TrimSpace(meaning) + " |\n"; !strings.Contains(string(page), row) {
			t.Errorf("the page has no row %q", row)
		}
	}
}

// TestCheckJSONFit: a free lock, and figures.
func TestCheckJSONFit(t *testing.T) {
	s := newSite(t)
	_, stdout, _ := s.run("check", "--json", target)
	var got checkJSON
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || !got.Fit || got.TTLSeconds < 3 || len(got.Latencies) != 4 ||
		got.Held == nil || *got.Held || got.Holder != nil || strings.Contains(stdout, "null") {
		t.Errorf("error %v: %s", err, stdout)
	}
}

// fields are the JSON names of a struct's fields.
func fields(form any) map[string]bool {
	names := map[string]bool{}
	for i := range reflect.TypeOf(form).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(form).Field(i).Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}

// TestCheckClock: the server's time comes from its replies.
func TestCheckClock(t *testing.T) {
	s := newSite(t)
	s.server.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
	_, stdout, _ := s.run("check", target)
	if !strings.Contains(stdout, "\nwarn     clock             this machine's clock is 1h0m0s behind the server's\n") {
		t.Error(stdout)
	}
}
