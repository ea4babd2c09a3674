package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gcslock/gcslock/gcstest"
)

// The locks that the commands are tried on.
const (
	free         = "free"
	live         = "live"
	stale        = "stale"
	olderLive    = "live, older format"
	olderStale   = "stale, older format"
	foreign      = "foreign"
	terraformOwn = "Terraform's"
	fastClock    = "live, its holder's and the local clock an hour ahead"
	slowClock    = "stale, its holder's and the local clock an hour behind"
)

var stateOfLock = map[string]string{
	free: stateFree, live: stateLive, stale: stateStale, olderLive: stateLive, olderStale: stateStale,
	foreign: stateForeign, terraformOwn: stateForeign, fastClock: stateLive, slowClock: stateStale,
}

// put makes such a lock in the bucket jobs, and returns its generation. Its times
// are half a minute off a whole one: a test that reads minutes has that long.
func (s *site) put(kind, object string) string {
	s.Helper()
	skew := map[string]time.Duration{fastClock: -time.Hour, slowClock: time.Hour}[kind]
	server := func() time.Time { return time.Now().Add(skew) }
	at, ttl := server().Add(-4*time.Minute-30*time.Second), time.Hour
	if stateOfLock[kind] == stateStale {
		at, ttl = server().Add(-10*time.Minute-30*time.Second), time.Minute
	}
	o := gcstest.Object{Metadata: map[string]string{
		"owner": "me", "host": "box", "pid": "4711", "operation": "nightly import", "nonce": "n", "refresh": "r", "ttl": ttl.String(),
		"acquired-at": at.Add(-time.Minute).UTC().Format(time.RFC3339Nano),
		"expires-at":  at.Add(ttl).UTC().Format(time.RFC3339Nano),
		"team":        "billing",
	}}
	switch kind {
	case free:
		return "1"
	case olderLive, olderStale:
		o.Metadata = map[string]string{"owner": "me", "expires-at": o.Metadata["expires-at"]}
	case foreign:
		o = gcstest.Object{Content: []byte("a file"), ContentType: "text/plain"}
	case terraformOwn:
		o = gcstest.Object{ContentType: "application/json", Content: []byte(`{"ID":"8a7c","Operation":"OperationTypeApply",` +
			`"Info":"","Who":"jo@box","Version":"1.11.4","Created":"2026-12-01T16:00:00.123456789Z","Path":"gs://jobs/prefix/default.tflock"}`)}
	}
	s.server.SetClock(func() time.Time { return at })
	o = s.server.Put("jobs", object, o)
	s.server.SetClock(server)
	return generationText(o.Generation)
}

// reports are the JSON objects of an output.
func (s *site) reports(stdout string) []map[string]any {
	s.Helper()
	var all []map[string]any
	for line := range strings.Lines(stdout) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			s.Fatalf("%q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

// TestJudge: what may be live is, as closely as the server's clock is known.
func TestJudge(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	lock := gcstest.Object{Metadata: map[string]string{"owner": "me", "nonce": "n", "ttl": "1m0s"}}
	for _, tt := range []struct {
		name    string
		ahead   time.Duration // the server's Date over the local time
		now     time.Duration // since the refresh, on the local clock
		foreign bool
		want    string
	}{
		{"just refreshed", 0, 0, false, stateLive},
		// The Date of a reply at noon says that it is from 12:00:00 to 12:00:01.
		// The ttl of a minute, and the second's slack, are over at 12:01:01.
		{"at the end, by the earliest that it can be", 0, 61 * time.Second, false, stateLive},
		{"past it", 0, 61*time.Second + 1, false, stateStale},
		{"the local clock is behind", time.Hour, 61*time.Second + 1 - time.Hour, false, stateStale},
		{"the local clock is ahead", -time.Hour, 61*time.Second + time.Hour, false, stateLive},
		{"foreign", 0, 24 * time.Hour, true, stateForeign},
	} {
		var server serverTime
		info := infoOf(lock, noon, tt.foreign)
		if got := judge(info, &server, noon); got != stateUnknown && !tt.foreign {
			t.Errorf("%s: %s before any Date", tt.name, got)
		}
		server.note(noon.Add(tt.ahead), noon, noon)
		if got := judge(info, &server, noon.Add(tt.now)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestRequests are what docs/cli.md says that each command costs.
func TestRequests(t *testing.T) {
	for _, tt := range []struct{ name, kind, object, args, want string }{
		{"status", live, "lock", "status gs://jobs/lock", "get"},
		{"status, free", free, "lock", "status gs://jobs/lock", "get"},
		{"status, foreign", foreign, "lock", "status gs://jobs/lock", "get"},
		{"status, Terraform's", terraformOwn, "p/default.tflock", "status gs://jobs/p/default.tflock", "get get"},
		{"status, Terraform's without content", live, "p/default.tflock", "status gs://jobs/p/default.tflock", "get"},
		{"list", terraformOwn, "p/default.tflock", "list gs://jobs/", "other"},
		{"break", stale, "lock", "break gs://jobs/lock --id ID", "get get delete"},
		{"break, Terraform's", terraformOwn, "p/default.tflock", "break gs://jobs/p/default.tflock --force --id ID", "get get get delete"},
		{"break, refused", live, "lock", "break gs://jobs/lock --id ID", "get"},
		{"break, another ID", stale, "lock", "break gs://jobs/lock --id 5", "get"},
		{"break, gone", free, "lock", "break gs://jobs/lock --id ID", "get"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			id := s.put(tt.kind, tt.object)
			s.run(strings.Fields(strings.ReplaceAll(tt.args, "ID", id))...)
			if got := s.ops(); got != tt.want {
				t.Errorf("requests %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLookTriesAgain where one request fails, and says at last why it can't be
// told.
func TestLookTriesAgain(t *testing.T) {
	for _, command := range lookCommands {
		t.Run(command, func(t *testing.T) {
			s := newSite(t)
			args := s.lookArgs(command, stale)
			fault := s.server.Inject(gcstest.Fault{Times: 1, Do: gcstest.FailStatus(503)})
			if p := s.start(args...); p.stdout.until("me") == "" || fault.Hits() != 1 {
				t.Error("no answer after one failure")
			}
		})
	}
	for _, tt := range []struct{ args, says string }{
		{"status gs://jobs/lock", "read gs://jobs/lock: HTTP 403"},
		{"watch gs://jobs/lock", "needs permission storage.objects.get"},
		{"break gs://jobs/lock --id 1", "needs permission storage.objects.get"},
		{"list gs://jobs", "list gs://jobs/: HTTP 403"},
		{"list gs://jobs/x", "needs permission storage.objects.list"},
	} {
		t.Run("forbidden "+tt.args, func(t *testing.T) {
			s := newSite(t)
			s.server.Inject(gcstest.Fault{Op: gcstest.Get, Do: gcstest.Forbid("storage.objects.get")})
			s.server.Inject(gcstest.Fault{Op: gcstest.Other, Do: gcstest.Forbid("storage.objects.list")})
			code, stdout, stderr := s.run(strings.Fields(tt.args)...)
			if code != exitStorage || stdout != "" || !strings.Contains(stderr, tt.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// lookCommands are those of a looker.
var lookCommands = []string{"status", "list", "watch", "break"}

// lookArgs have the command look at such a lock, which is put in place.
func (s *site) lookArgs(command, kind string) []string {
	s.Helper()
	id := s.put(kind, "lock")
	switch command {
	case "list":
		return []string{"list", "--all", "gs://jobs"}
	case "break":
		return []string{"break", "--force", target, "--id", id}
	}
	return []string{command, target}
}

// unprintable are the characters of an output that are no line's end.
func unprintable(output string) string {
	if !utf8.ValidString(output) {
		return output
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return -1
		}
		return r
	}, output)
}

// withoutDate is the address of the site's server behind a proxy that drops the
// Date of its replies.
func (s *site) withoutDate() string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.server.ServeHTTP(dateless{w}, r)
	}))
	s.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

type dateless struct{ http.ResponseWriter }

func (d dateless) WriteHeader(code int) {
	d.Header()["Date"] = nil // net/http sets none of its own then
	d.ResponseWriter.WriteHeader(code)
}

func generationText(generation int64) string { return strconv.FormatInt(generation, 10) }
