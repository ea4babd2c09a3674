package gcslock

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzReadRecord: whatever strangers write, what is read of it is within the
// bounds, says what they said, and can be shown to people.
func FuzzReadRecord(f *testing.F) {
	for _, name := range []string{"current", "older", "terraform"} {
		text, err := json.Marshal(golden(f, name).metadata)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		``, `null`, `{"owner":null}`, `{"owner":""}`, `{"nonce":""}`, `{"Owner":"o","NONCE":"n"}`, `{"":"","ttl":"1m"}`,
		`{"owner":"o","expires-at":"9999-12-31T23:59:59Z"}`, `{"owner":"o","expires-at":"0000-01-01T00:00:00Z","ttl":"1ns"}`,
		`{"owner":"o","expires-at":"0000-01-01T00:00:00+01:00"}`, `{"owner":"o","expires-at":"9999-12-31T23:59:59-01:00"}`,
		`{"owner":"o","expires-at":"2026-11-30T10:00:00+24:00","acquired-at":"2026-11-30T10:00:00+23:60"}`,
		`{"owner":"o","expires-at":"0001-01-01T00:00:00Z","ttl":"2562047h47m16.854775807s"}`,
		`{"owner":"\u001b[2J","host":"\n","operation":"\u202e","pid":"9223372036854775808","ttl":"-1s"}`,
		`{"owner":"o","expires-at":"soon","ttl":"24h","pid":"-7"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var md map[string]string
		if json.Unmarshal(text, &md) != nil {
			t.Skip()
		}
		before := maps.Clone(md)
		r := readRecord(md)
		_, owner := md["owner"]
		_, nonce := md["nonce"]
		if r.foreign() == (owner || nonce) || r.owner != md["owner"] || r.nonce != md["nonce"] || r.refresh != md["refresh"] {
			t.Errorf("%v is read as %+v", md, r)
		}
		if r.ttl != 0 && (r.ttl < 3*time.Second || r.ttl > 24*time.Hour) {
			t.Errorf("a ttl of %q counts as %v", md["ttl"], r.ttl)
		}
		info := (&Lock{settings: settings{ttl: time.Minute}}).info(stored{version: version{7, 1}, metadata: md, updated: start}, after(0))
		if info.Foreign != r.foreign() || info.PID < 0 || info.Foreign && info.Stale {
			t.Errorf("%v is shown as %+v", md, info)
		}
		if _, err := json.Marshal(info); err != nil {
			t.Errorf("%v can't be shown as JSON: %v", md, err)
		}
		oneLine(t, info.describe())
		oneLine(t, info.LogValue().String())
		if !maps.Equal(md, before) {
			t.Errorf("reading has changed the metadata from %v to %v", before, md)
		}
	})
}

// oneLine asserts that a text leaves a terminal as it is.
func oneLine(t *testing.T, text string) {
	t.Helper()
	if printable(text) != text {
		t.Errorf("%q is not safe to print", text)
	}
}

// FuzzWrittenMetadata: what New accepts is within Cloud Storage's limits, and
// reads back as it was meant.
func FuzzWrittenMetadata(f *testing.F) {
	const ttl, now = int64(time.Minute), int64(1796032820123456789)
	f.Add("host/1", "nightly import", "run", "https://ci.example/run/17", ttl, now)
	for _, size := range []int{7 << 10, 8 << 10, 9 << 10} {
		f.Add("o", "op", "k", strings.Repeat("x", size), ttl, now)
	}
	for _, key := range []string{"", "ttl", "NONCE", "\xff", "Refresh "} {
		f.Add("o", "op", key, "v", ttl, now)
	}
	f.Add("", "op", "k", "v", ttl, now)
	f.Add("\xff", "op", "k", "v", ttl, now)
	f.Add("o", "\xff", "k", "v", ttl, now)
	f.Add("o", "op", "k", "\xff", ttl, now)
	for _, bound := range []time.Duration{3 * time.Second, 24 * time.Hour} {
		for ns := range int64(3) {
			f.Add("o", "", "k", "", int64(bound)+ns-1, []int64{0, -1 << 63, 1<<63 - 1}[ns])
		}
	}
	f.Fuzz(func(t *testing.T, owner, operation, key, value string, ttl, now int64) {
		s, err := newSettings([]Option{
			WithTTL(time.Duration(ttl)), WithOwner(owner), WithOperation(operation), WithMetadata(map[string]string{key: value}),
		})
		if err != nil {
			return
		}
		wall := time.Unix(0, now)
		own := ownAttempt{randomID(nonceBytes), reading{wall: wall}}
		md := s.newMetadata(own, randomID(refreshBytes), own.sent)
		size := 0
		for k, v := range md {
			size += len(k) + len(v)
			if k == "" || !utf8.ValidString(k+v) {
				t.Errorf("writes %q: %q", k, v)
			}
		}
		if size > 8192 {
			t.Errorf("writes %d bytes", size)
		}
		r := readRecord(md)
		if !r.hasOwner || !r.hasNonce || r.owner != owner || r.nonce != md["nonce"] || r.refresh != md["refresh"] ||
			r.ttl != time.Duration(ttl) || !r.expires.Equal(wall.Add(time.Duration(ttl))) {
			t.Errorf("owner %q, ttl %v at %v read back as %+v", owner, time.Duration(ttl), wall, r)
		}
		if md["operation"] != operation || md[key] != value {
			t.Errorf("operation %q and %q: %q are written as %v", operation, key, value, md)
		}
	})
}
