package gcslock

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// golden is an object resource of testdata as Cloud Storage's JSON has it.
func golden(t testing.TB, name string) stored {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var resource struct {
		Generation, Metageneration string
		Updated                    time.Time
		Metadata                   map[string]string
	}
	if err := json.Unmarshal(text, &resource); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	return stored{
		version:  version{number(resource.Generation), number(resource.Metageneration)},
		metadata: resource.Metadata,
		updated:  resource.Updated,
	}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGoldenFormats reads an object of each kind and judges it just before and
// just after the instant at which it turns stale by the server's clock.
func TestGoldenFormats(t *testing.T) {
	for _, tt := range []struct {
		name    string
		owner   string
		ttl     time.Duration
		foreign bool
		lives   string // the last instant at which it is live
	}{
		// updated + ttl + 1 s is 10:01:21.250, and expires-at is before that.
		{"current", "build-7/4711", time.Minute, false, "2026-11-30T10:01:21.250Z"},
		// expires-at + 10 s.
		{"older", "worker-a", 0, false, "2026-11-30T10:03:30.123456789Z"},
		{"terraform", "", 0, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := golden(t, tt.name)
			r := readRecord(obj.metadata)
			if r.owner != tt.owner || r.ttl != tt.ttl || r.foreign() != tt.foreign {
				t.Errorf("read owner %q, ttl %v, foreign %v; want %q, %v, %v", r.owner, r.ttl, r.foreign(), tt.owner, tt.ttl, tt.foreign)
			}
			judgeAt := func(server time.Time) verdict {
				w := watch{server: &serverClock{date: server}, ownTTL: time.Minute}
				w.see(obj, reading{})
				return w.judge(reading{})
			}
			if tt.foreign {
				if v := judgeAt(obj.updated.AddDate(10, 0, 0)); v.stale || v.wait != 0 {
					t.Errorf("a foreign object is judged %+v after ten years, want never stale", v)
				}
				return
			}
			lives := moment(t, tt.lives)
			if v := judgeAt(lives); v.stale || v.wait <= 0 {
				t.Errorf("at %v judged %+v, want live", lives, v)
			}
			if v := judgeAt(lives.Add(time.Nanosecond)); !v.stale {
				t.Errorf("just after %v judged %+v, want stale", lives, v)
			}
		})
	}
}

// TestWrittenFormat holds what we write against the golden object, which
// clients of this version and of the older format read.
func TestWrittenFormat(t *testing.T) {
	want := golden(t, "current").metadata
	s, err := newSettings([]Option{
		WithOwner("build-7/4711"), WithOperation("nightly import"),
		WithMetadata(map[string]string{"run": "https://ci.example/run/17"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.host, s.pid = "build-7", 4711
	own := ownAttempt{"00112233445566778899aabbccddeeff", reading{wall: moment(t, "2026-11-30T10:00:20.123456789Z")}}
	got := s.newMetadata(own, "0123456789abcdef", own.sent)
	if !maps.Equal(got, want) {
		t.Errorf("wrote\n%v\nwant\n%v", got, want)
	}
	if len(s.metadata) != 1 {
		t.Errorf("writing changed the caller's metadata to %v", s.metadata)
	}
}

func TestReadRecord(t *testing.T) {
	const at = "2026-11-30T10:00:00Z"
	for _, tt := range []struct {
		name     string
		metadata map[string]string
		ttl      time.Duration
		expires  bool
		foreign  bool
	}{
		{"nothing", nil, 0, false, true},
		{"only strangers' keys", map[string]string{"a": "b", "ttl": "1m"}, time.Minute, false, true},
		{"empty owner counts as a key", map[string]string{"owner": ""}, 0, false, false},
		{"a nonce counts as a key", map[string]string{"nonce": "x"}, 0, false, false},
		{"unreadable expiry", map[string]string{"owner": "o", "expires-at": "soon"}, 0, false, false},
		{"expiry in no year of UTC", map[string]string{"owner": "o", "expires-at": "9999-12-31T23:59:59-01:00"}, 0, false, false},
		{"unreadable ttl", map[string]string{"owner": "o", "expires-at": at, "ttl": "long"}, 0, true, false},
		{"zero ttl", map[string]string{"owner": "o", "expires-at": at, "ttl": "0s"}, 0, true, false},
		{"negative ttl", map[string]string{"owner": "o", "expires-at": at, "ttl": "-1m"}, 0, true, false},
		{"ttl shorter than New allows", map[string]string{"owner": "o", "expires-at": at, "ttl": "1ns"}, 3 * time.Second, true, false},
		{"ttl longer than New allows", map[string]string{"owner": "o", "expires-at": at, "ttl": "99999h"}, 24 * time.Hour, true, false},
		{"ttl beyond a duration", map[string]string{"owner": "o", "expires-at": at, "ttl": "9999999999h"}, 0, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readRecord(tt.metadata)
			if r.ttl != tt.ttl || !r.expires.IsZero() != tt.expires || r.foreign() != tt.foreign {
				t.Errorf("ttl %v, expires %v, foreign %v; want %v, %v, %v",
					r.ttl, r.expires, r.foreign(), tt.ttl, tt.expires, tt.foreign)
			}
		})
	}
}

func TestRandomID(t *testing.T) {
	a, b := randomID(nonceBytes), randomID(nonceBytes)
	if len(a) != 32 || a == b || strings.Trim(a, "0123456789abcdef") != "" {
		t.Errorf("ids %q and %q, want two different ones of 32 hex digits", a, b)
	}
}
