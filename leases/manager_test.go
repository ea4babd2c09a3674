package leases

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

func TestUsableTimings(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct{ ttl, interval, wantTTL, wantInterval time.Duration }{
		{0, 0, 60 * s, 20 * s},
		{90 * s, 0, 90 * s, 20 * s},
		{30 * s, 0, 30 * s, 10 * s}, // 20 s would be unusable
		{0, 5 * s, 60 * s, 5 * s},
		{3 * s, 1 * s, 3 * s, 1 * s},
		{24 * time.Hour, time.Hour, 24 * time.Hour, time.Hour},
		{60 * s, 29 * s, 60 * s, 29 * s},
		{60 * s, 30 * s, 60 * s, 20 * s}, // at half the ttl
		{60 * s, 60 * s, 60 * s, 20 * s},
		{60 * s, 2 * time.Hour, 60 * s, 20 * s},
		{60 * s, -1, 60 * s, 20 * s},
		{60 * s, 999 * time.Millisecond, 60 * s, 20 * s},
		{2 * s, 1 * s, 60 * s, 1 * s},
		{-1, 0, 60 * s, 20 * s},
		{25 * time.Hour, 0, 60 * s, 20 * s},
	} {
		got := Config{TTL: tt.ttl, RenewInterval: tt.interval}.usable()
		if got.TTL != tt.wantTTL || got.RenewInterval != tt.wantInterval {
			t.Errorf("%v and %v become %v and %v, want %v and %v", tt.ttl, tt.interval, got.TTL, got.RenewInterval, tt.wantTTL, tt.wantInterval)
		}
	}
}

// TestTimingsAreLegal: what this package calls usable, package gcslock does not
// refuse.
func TestTimingsAreLegal(t *testing.T) {
	for _, ttl := range []time.Duration{minTTL, minTTL + 1, 7 * time.Second, DefaultTTL, maxTTL} {
		for _, interval := range []time.Duration{0, minInterval, ttl / 3, ttl/2 - 1, ttl / 2, ttl} {
			m := NewManager(bucketOf(t), "workers", Config{Enabled: true, TTL: ttl, RenewInterval: interval}, quiet)
			if _, err := m.newLock(m.newWorker("a")); err != nil {
				t.Errorf("ttl %v, interval %v: %v", ttl, interval, err)
			}
		}
	}
}

func TestHolderID(t *testing.T) {
	a, b := NewManager(nil, "", Config{}, quiet), NewManager(nil, "", Config{}, quiet)
	host, _ := os.Hostname()
	want := regexp.MustCompile(fmt.Sprintf(`^%s/%d/[0-9a-f]{16}$`, regexp.QuoteMeta(host), os.Getpid()))
	if !want.MatchString(a.HolderID()) || a.HolderID() == b.HolderID() {
		t.Errorf("holder ids %q and %q", a.HolderID(), b.HolderID())
	}
}

// TestRefused: what can never work is told in the log and in Status, at once and
// before any request, and Run returns.
func TestRefused(t *testing.T) {
	run := func(context.Context) error { t.Error("ran"); return nil }
	for _, tt := range []struct {
		title, prefix, name string
		opts                []Option
		fn                  func(context.Context) error
		want                []string
	}{
		{"name", "workers", "", nil, run, []string{`worker ""`, "name is empty"}},
		{"slash before", "workers", "/a", nil, run, []string{`"/a"`, "empty part"}},
		{"slash after", "workers", "a/", nil, run, []string{`"a/"`, "empty part"}},
		{"dots", "workers", "../a", nil, run, []string{`"../a"`, ".."}},
		{"line break", "workers", "a\nb", nil, run, []string{`"a\nb"`, "not printable"}},
		{"no UTF-8", "workers", "a\xff", nil, run, []string{"UTF-8"}},
		{"long", "workers", strings.Repeat("a", 1020), nil, run, []string{"1028 bytes"}},
		{"prefix", "a//b", "a", nil, run, []string{"prefix", `"a//b"`}},
		{"root prefix", "/", "a", nil, run, []string{"prefix", "is empty"}},
		{"option", "workers", "a", []Option{nil}, run, []string{"option is nil"}},
		{"observer", "workers", "a", []Option{WithObserver(nil)}, run, []string{"observer is nil"}},
		{"function", "workers", "a", nil, nil, []string{"function is nil"}},
	} {
		t.Run(tt.title, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.start("a", Config{})
				m := NewManager(a.bucket(), tt.prefix, Config{Enabled: true}, append([]Option{WithLogger(a.logger)}, tt.opts...)...)
				m.Run(a.ctx, tt.name, tt.fn)
				m.Go(a.ctx, tt.name, tt.fn)
				s := m.Status()
				if len(s) != 1 || s[0].Name != tt.name || s[0].State != Stopped {
					t.Fatalf("status %+v", s)
				}
				for _, part := range tt.want {
					if !strings.Contains(s[0].LastError, part) {
						t.Errorf("status says %q, not %q", s[0].LastError, part)
					}
				}
				if n := a.log.lines("level=ERROR", "worker refused"); n != 2 && tt.title != "option" {
					t.Errorf("%d lines:\n%s", n, a.log)
				}
				if err := m.Wait(0); err != nil {
					t.Error(err)
				}
				if n := len(w.server.Requests()); n > 0 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
	t.Run("bucket", func(t *testing.T) {
		m := NewManager(nil, "workers", Config{Enabled: true}, quiet)
		m.Run(t.Context(), "a", run)
		if s := m.Status(); len(s) != 1 || !strings.Contains(s[0].LastError, "bucket handle is nil") {
			t.Errorf("status %+v", s)
		}
	})
}

// TestUnusableTimingsAreTold, and unset ones are not worth a line.
func TestUnusableTimingsAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if a := w.start("a", Config{TTL: 30 * time.Second}); a.log.String() != "" {
			t.Errorf("told of what is unset: %s", a.log)
		}
		a := w.start("a", Config{TTL: time.Second, RenewInterval: time.Hour})
		if a.log.lines("level=WARN", "ttl=1s", "ttlUsed=1m0s", "renewInterval=1h0m0s", "renewIntervalUsed=20s") != 1 {
			t.Errorf("not told: %s", a.log)
		}
	})
}

// TestSameNameTwice: the second one is refused, and the first goes on. After its
// end the name is free.
func TestSameNameTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		ctx, cancel := context.WithCancel(a.ctx)
		a.Go(ctx, "a", untilCancelled)
		a.Run(a.ctx, "a", func(context.Context) error { t.Error("ran"); return nil })
		a.Go(a.ctx, "a", func(context.Context) error { t.Error("ran"); return nil })
		time.Sleep(time.Second)
		if s := a.is("a", Leading); !strings.Contains(s.LastError, "running in this manager already") || len(a.Status()) != 1 {
			t.Errorf("status %+v", a.Status())
		}
		if n := a.log.lines("level=ERROR", "worker refused", "use another name"); n != 2 {
			t.Errorf("%d lines:\n%s", n, a.log)
		}
		cancel()
		if err := a.Wait(time.Minute); err != nil {
			t.Error(err)
		}
		a.Go(a.ctx, "a", untilCancelled)
		time.Sleep(time.Second)
		a.is("a", Leading)
		a.shutDown()
	})
}

// TestRegisteredByGo: Wait and Status know the worker when Go has returned.
func TestRegisteredByGo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		a.Go(a.ctx, "a", untilCancelled)
		if s := a.Status(); len(s) != 1 || s[0].Name != "a" || s[0].State != Following {
			t.Errorf("status %+v", s)
		}
		says(t, a.Wait(0), `"a"`, "following since")
		a.shutDown()
	})
}

// TestWait counts those in that come while it waits, names all that are late,
// and returns as soon as it can.
func TestWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{})
		if err := a.Wait(0); err != nil {
			t.Errorf("without workers: %v", err)
		}
		for _, name := range []string{"c", "b", "a"} {
			a.Go(a.ctx, name, untilCancelled)
		}
		early, cancel := context.WithTimeout(a.ctx, 8*time.Second)
		defer cancel()
		b := w.start("b", Config{})
		b.Go(early, "early", untilCancelled)
		time.AfterFunc(5*time.Second, func() {
			a.Go(a.ctx, "late", untilCancelled)
			b.Go(b.ctx, "later", untilCancelled)
		})
		if err := b.Wait(9 * time.Second); err == nil || strings.Contains(err.Error(), "early") {
			t.Errorf("%v, want only the one that came while it waited", err)
		}
		b.shutDown()
		began := time.Now()
		err := a.Wait(10 * time.Second)
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("waited %v", d)
		}
		says(t, err, `"a" (gs://jobs/workers/a, leading since `, `"b" (`, `"c" (`, `"late" (`)
		a.stop()
		began = time.Now()
		if err := a.Wait(time.Minute); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestStatusAsJSON: what a health endpoint shows.
func TestStatusAsJSON(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start("a", Config{}), w.start("b", Config{})
		a.Go(a.ctx, "a", untilCancelled)
		time.Sleep(time.Minute)
		since := time.Now()
		b.Go(b.ctx, "a", untilCancelled)
		time.Sleep(time.Minute)
		obj, _ := w.object("a")
		synctest.Wait()
		for _, tt := range []struct {
			m    *instance
			want string
		}{
			{a, fmt.Sprintf(`[{"name":"a","state":"leading","since":%q,"token":%d,"object":"gs://jobs/workers/a"}]`,
				since.Add(-time.Minute+2*latency).Format(time.RFC3339Nano), obj.Generation)},
			{b, fmt.Sprintf(`[{"name":"a","state":"following","since":%q,"object":"gs://jobs/workers/a","holder":%q,"holderSeen":%q}]`,
				since.Format(time.RFC3339Nano), a.HolderID(), b.Status()[0].HolderSeen.Format(time.RFC3339Nano))},
		} {
			got, err := json.Marshal(tt.m.Status())
			if err != nil || string(got) != tt.want {
				t.Errorf("%s (%v), want %s", got, err, tt.want)
			}
		}
		if age := time.Since(b.Status()[0].HolderSeen); age > 1200*time.Millisecond {
			t.Errorf("last looked %v ago", age)
		}
		a.shutDown()
		b.shutDown()
	})
}

// TestPrefix: with and without its slash, and none.
func TestPrefix(t *testing.T) {
	for prefix, object := range map[string]string{"x/y": "x/y/a/b", "x/y/": "x/y/a/b", "": "a/b"} {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.start("a", Config{})
			m := NewManager(a.bucket(), prefix, Config{Enabled: true}, quiet)
			m.Run(a.ctx, "a/b", func(context.Context) error {
				if _, ok := w.server.Object(testBucket, object); !ok {
					t.Errorf("prefix %q: no object %q", prefix, object)
				}
				if s := m.Status(); s[0].Object != "gs://jobs/"+object {
					t.Errorf("status says %q", s[0].Object)
				}
				return nil
			})
		})
	}
}

// TestLock: the object says who, what for and for how long.
func TestLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start("a", Config{TTL: 30 * time.Second, RenewInterval: 10 * time.Second})
		a.Run(a.ctx, "a", func(ctx context.Context) error {
			lock, err := gcslock.New(a.bucket(), "workers/a")
			if err != nil {
				t.Fatal(err)
			}
			info, err := lock.Inspect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if info.Owner != a.HolderID() || info.Operation != "worker a" || info.TTL != 30*time.Second {
				t.Errorf("info %+v", info)
			}
			return nil
		})
		if n := w.count("a", gcstest.Update); n != 0 {
			t.Errorf("%d updates", n)
		}
	})
}
