package gcslock

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// offlineBucket is a handle that no request is ever sent through.
func offlineBucket(t *testing.T, name string) *storage.BucketHandle {
	t.Helper()
	client, err := storage.NewClient(t.Context(), option.WithoutAuthentication(), option.WithEndpoint("http://127.0.0.1:9/storage/v1/"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client.Bucket(name)
}

// TestNewRefuses: bad input is refused before any request, with an error that
// names what is wrong and both numbers where two disagree.
func TestNewRefuses(t *testing.T) {
	big := map[string]string{"k": strings.Repeat("x", 8<<10)}
	for _, tt := range []struct {
		name, bucket, object string
		opts                 []Option
		want                 []string
	}{
		{"bucket", "", "o", nil, []string{"bucket name is empty"}},
		{"object", "b", "", nil, []string{"object name is empty"}},
		{"long object", "b", strings.Repeat("o", 1025), nil, []string{"1025", "1024"}},
		{"object with a line break", "b", "a\nb", nil, []string{`"a\nb"`, "line break"}},
		{"object that is no UTF-8", "b", "a\xff", nil, []string{`"a\xff"`, "UTF-8"}},
		{"dot", "b", ".", nil, []string{`"."`, "refused by Cloud Storage"}},
		{"dots", "b", "..", nil, []string{`".."`, "refused by Cloud Storage"}},
		{"acme", "b", ".well-known/acme-challenge/x", nil, []string{"refused by Cloud Storage"}},
		{"nil option", "b", "o", []Option{nil}, []string{"option is nil"}},
		{"short ttl", "b", "o", []Option{WithTTL(2 * time.Second)}, []string{"2s", "3s"}},
		{"long ttl", "b", "o", []Option{WithTTL(25 * time.Hour)}, []string{"25h", "24h"}},
		{"interval at half the ttl", "b", "o", []Option{WithTTL(10 * time.Second), WithRefreshInterval(5 * time.Second)}, []string{"5s", "10s"}},
		{"negative interval", "b", "o", []Option{WithRefreshInterval(-time.Second)}, []string{"-1s", "1m0s"}},
		{"pauses the wrong way round", "b", "o", []Option{WithWait(2*time.Second, time.Second)}, []string{"2s", "1s"}},
		{"no pause", "b", "o", []Option{WithWait(0, time.Second)}, []string{"0s", "1s"}},
		{"no function", "b", "o", []Option{WithStandby(nil)}, []string{"WithStandby is nil"}},
		{"no wait", "b", "o", []Option{WithMaxWait(0)}, []string{"longest wait", "0s"}},
		{"no hold", "b", "o", []Option{WithMaxHold(-1)}, []string{"longest hold", "-1ns"}},
		{"negative failures", "b", "o", []Option{WithMaxRefreshFailures(-1)}, []string{"-1"}},
		{"empty owner", "b", "o", []Option{WithOwner("")}, []string{"owner label is empty"}},
		{"owner that is no UTF-8", "b", "o", []Option{WithOwner("\xff")}, []string{"UTF-8"}},
		{"reserved key", "b", "o", []Option{WithMetadata(map[string]string{"Nonce": "x"})}, []string{`"Nonce"`, "protocol"}},
		{"empty key", "b", "o", []Option{WithMetadata(map[string]string{"": "x"})}, []string{"key is empty"}},
		{"value that is no UTF-8", "b", "o", []Option{WithMetadata(map[string]string{"a": "\xff"})}, []string{"UTF-8"}},
		{"big metadata", "b", "o", []Option{WithMetadata(big)}, []string{"8192"}},
		{"two things at once", "b", "", []Option{WithTTL(1)}, []string{"object name is empty", "ttl 1ns"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lock, err := New(offlineBucket(t, tt.bucket), tt.object, tt.opts...)
			if err == nil || lock != nil {
				t.Fatalf("accepted: %v, %v", lock, err)
			}
			for _, want := range append(tt.want, "gcslock: lock gs://"+tt.bucket+"/") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	if _, err := New(nil, "o"); err == nil || !strings.Contains(err.Error(), "bucket handle is nil") {
		t.Errorf("a nil bucket handle: %v", err)
	}
}

// TestNewLockRefusesLater: the older signature returns no error, so every
// call does.
func TestNewLockRefusesLater(t *testing.T) {
	l := NewLock(offlineBucket(t, "b"), "id", "o", time.Second, nil)
	ctx := t.Context()
	_, acquire := l.Acquire(ctx)
	_, try := l.TryAcquire(ctx)
	_, inspect := l.Inspect(ctx)
	for name, err := range map[string]error{
		"Lock": l.Lock(ctx, time.Second), "RefreshLock": l.RefreshLock(ctx), "Unlock": l.Unlock(ctx),
		"Acquire": acquire, "TryAcquire": try, "Inspect": inspect, "Break": l.Break(ctx, 1),
		"Do": l.Do(ctx, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), "ttl 1s is not from 3s") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	l, err := New(offlineBucket(t, "b"), "o")
	if err != nil {
		t.Fatal(err)
	}
	if l.ttl != time.Minute || l.refreshInterval != 20*time.Second || l.validity() != 54*time.Second {
		t.Errorf("ttl %v, refresh every %v, validity %v; want 1m, 20s, 54s", l.ttl, l.refreshInterval, l.validity())
	}
	if l.minWait != 100*time.Millisecond || l.maxWait != time.Second {
		t.Errorf("looks every %v to %v, want 100ms to 1s", l.minWait, l.maxWait)
	}
	if l.reclaim || l.countFailures || l.manual || l.limitHold || l.limitWait {
		t.Errorf("on by default: %+v", l.settings)
	}
	if !strings.Contains(l.owner, "/") || l.pid == 0 {
		t.Errorf("owner %q, pid %d; want HOST/PID", l.owner, l.pid)
	}
	older := NewLock(offlineBucket(t, "b"), "id", "o", time.Minute, nil)
	if !older.reclaim || !older.countFailures || older.maxFailures != 3 || older.owner != "id" {
		t.Errorf("the caller-driven form's defaults are %+v", older.settings)
	}
}

// TestOptionsKeepTheirOwnCopies: what the caller does to its map and slice
// afterwards changes nothing.
func TestOptionsKeepTheirOwnCopies(t *testing.T) {
	md, body := map[string]string{"k": "v"}, []byte("body")
	opts := []Option{WithMetadata(md), WithPayload("text/plain", body)}
	md["k"], body[0] = "changed", 'X'
	l, err := New(offlineBucket(t, "b"), "o", opts...)
	if err != nil {
		t.Fatal(err)
	}
	if l.metadata["k"] != "v" || string(l.payload) != "body" {
		t.Errorf("kept %v and %q", l.metadata, l.payload)
	}
}
