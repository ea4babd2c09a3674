package gcslock

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func TestInspect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lock := a.lock(WithOperation("import"), WithMetadata(map[string]string{"run": "17"}), WithManualRefresh())
		_, err := lock.Inspect(t.Context())
		if !errors.Is(err, ErrNotHeld) {
			t.Errorf("a free lock is %v", err)
		}
		says(t, err, "gs://jobs/nightly/lock", "free")
		lease, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		acquired := time.Now()
		time.Sleep(10 * time.Second)
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		refreshed := time.Now()
		w.server.ResetRequests()
		info, err := w.machine("b").lock().Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := w.ops(""); got != "get" {
			t.Errorf("Inspect is %q, want one get", got)
		}
		if info.Bucket != testBucket || info.Object != testObject || info.URL() != "gs://jobs/nightly/lock" ||
			info.Generation != lease.Token() || info.Metageneration != 2 ||
			info.Owner != "a" || info.Host != lock.host || info.PID != lock.pid || info.Operation != "import" ||
			info.TTL != time.Minute || info.Metadata["run"] != "17" || info.Foreign || info.Stale {
			t.Errorf("info is %+v", info)
		}
		if !info.AcquiredAt.Equal(acquired) || !info.Updated.Equal(refreshed) || !info.ExpiresAt.Equal(refreshed.Add(time.Minute)) {
			t.Errorf("acquired %v, updated %v, expires %v", info.AcquiredAt, info.Updated, info.ExpiresAt)
		}
		attrs, err := w.machine("c").bucket(testBucket).Object(testObject).Attrs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if listed := InfoFrom(attrs); !reflect.DeepEqual(listed, info) {
			t.Errorf("from the attributes %+v, want %+v", listed, info)
		}
		w.release(lease)
	})
}

// TestInspectFails: three attempts of what may succeed, one of what won't.
func TestInspectFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault gcstest.Action
		times int
		reads int
		ok    bool
	}{
		{"passing", gcstest.FailStatus(503), 2, 3, true},
		{"lasting", gcstest.FailStatus(503), 0, 3, false},
		{"forbidden", gcstest.Forbid("storage.objects.get"), 0, 1, false},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.rival()
			w.inject(gcstest.Get, tt.times, tt.fault)
			_, err := w.machine("a").lock().Inspect(t.Context())
			if (err == nil) != tt.ok || w.count(gcstest.Get) != tt.reads {
				t.Errorf("%s: %v after %d reads", tt.name, err, w.count(gcstest.Get))
			}
			if err != nil {
				says(t, err, "inspect", "read gs://jobs/nightly/lock")
			}
		})
	}
	inWorld(t, func(t *testing.T, w *world) {
		w.inject(gcstest.Get, 0, gcstest.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.machine("a").lock().Inspect(ctx)
		isContext(t, err, context.DeadlineExceeded)
	})
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lock, err := New(a.bucket("nowhere"), testObject)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lock.Inspect(t.Context()); errors.Is(err, ErrNotHeld) || err == nil {
			t.Errorf("a missing bucket is %v", err)
		}
	})
}

func TestBreak(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease, lock := a.acquire(), w.machine("b").lock()
		err := lock.Break(t.Context(), lease.Token()+1)
		if held := isHeld(t, err, "a"); held.Holder.Generation != lease.Token() {
			t.Errorf("the holder is %+v", held.Holder)
		}
		says(t, lock.Break(t.Context(), 0), "0 is no generation")

		// Whatever its metageneration.
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.server.ResetRequests()
		if err := lock.Break(t.Context(), lease.Token()); err != nil {
			t.Fatal(err)
		}
		if got := w.ops("b"); got != "get delete" {
			t.Errorf("Break is %q, want get delete", got)
		}
		if err := lock.Break(t.Context(), lease.Token()); !errors.Is(err, ErrNotHeld) {
			t.Errorf("broken twice: %v", err)
		}
		// The live holder learns with its next refresh.
		<-lease.Context().Done()
		w.lost(lease)
	})
}

// TestBreakMeets what can come between its read and its delete.
func TestBreakMeets(t *testing.T) {
	for name, then := range map[string]func(w *world){
		"a refresh":   func(w *world) { w.server.Edit(testBucket, testObject, map[string]string{keyRefresh: "new"}) },
		"a release":   func(w *world) { w.server.Delete(testBucket, testObject) },
		"a successor": func(w *world) { w.server.Delete(testBucket, testObject); w.rival() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				victim := w.rival()
				hold := gcstest.NewBarrier()
				w.inject(gcstest.Delete, 1, gcstest.Hold(hold))
				go func() { w.arrived(hold); then(w); hold.Release() }()
				err := w.machine("b").lock().Break(t.Context(), victim.Generation)
				obj, ok := w.object()
				switch {
				case name == "a refresh" && (err != nil || ok):
					t.Errorf("%v, object there: %v; want it broken", err, ok)
				case name == "a release" && !errors.Is(err, ErrNotHeld):
					t.Errorf("%v, want ErrNotHeld", err)
				case name == "a successor" && (!errors.Is(err, ErrLocked) || obj.Metadata[keyOwner] != "rival"):
					t.Errorf("%v, object there: %v; want the successor untouched", err, ok)
				}
			})
		})
	}
}

func TestBreakFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fault gcstest.Action
		times int
		want  string // in the error; empty: none
	}{
		"reply lost": {gcstest.LoseReply(), 1, ""},
		"503":        {gcstest.FailStatus(503), 2, ""},
		"outage":     {gcstest.FailStatus(503), 0, "503"},
		"forbidden":  {gcstest.Forbid("storage.objects.delete"), 0, "needs permission storage.objects.delete"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				victim := w.rival()
				w.inject(gcstest.Delete, tt.times, tt.fault)
				began := time.Now()
				err := w.machine("b").lock().Break(t.Context(), victim.Generation)
				took(t, "Break", began, 0, breakLimit)
				if tt.want != "" {
					says(t, err, "break", "delete gs://jobs/nightly/lock", tt.want)
				} else if _, ok := w.object(); err != nil || ok {
					t.Errorf("%v, object there: %v", err, ok)
				}
			})
		})
	}
}
