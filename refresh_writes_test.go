package gcslock

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestRefreshWrites renews what competitors judge by, and counts its own
// validity from before the request was sent.
func TestRefreshWrites(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		lease := a.acquire(WithManualRefresh())
		before, _ := w.object()
		time.Sleep(10 * time.Second)
		w.inject(gcstest.Update, 1, gcstest.DelayReply(5*time.Second))
		sent := time.Now()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !lease.Expires().Equal(sent.Add(54 * time.Second)) {
			t.Errorf("expires %v after the refresh was sent, want 54 s", lease.Expires().Sub(sent))
		}
		after, _ := w.object()
		if after.Metadata[keyExpiresAt] != timestamp(sent.Add(time.Minute)) || after.Metadata[keyRefresh] == before.Metadata[keyRefresh] {
			t.Errorf("metadata are %v after %v", after.Metadata, before.Metadata)
		}
		if after.Metadata[keyNonce] != before.Metadata[keyNonce] || after.Metadata[keyAcquiredAt] != before.Metadata[keyAcquiredAt] {
			t.Errorf("the refresh changed what stays: %v after %v", after.Metadata, before.Metadata)
		}
		if after.Generation != lease.Token() || after.Metageneration != before.Metageneration+1 {
			t.Errorf("object at %d/%d after %d/%d", after.Generation, after.Metageneration, before.Generation, before.Metageneration)
		}
		w.release(lease)
	})
}

// TestRefreshWritesWhatChanges: what nobody can have changed is not written again,
// and what somebody may have, is.
func TestRefreshWritesWhatChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		for _, want := range []int{8, 2, 2} {
			w.server.ResetRequests()
			if err := lease.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			var body struct{ Metadata map[string]string }
			if err := json.Unmarshal(w.server.Requests()[0].Body, &body); err != nil {
				t.Fatal(err)
			}
			if len(body.Metadata) != want || body.Metadata[keyExpiresAt] == "" || body.Metadata[keyRefresh] == "" {
				t.Errorf("wrote %v, want %d keys", body.Metadata, want)
			}
		}
		w.release(lease)
	})
	for _, lost := range []bool{false, true} { // the reply of the refresh before the edit
		inWorld(t, func(t *testing.T, w *world) {
			lease := w.machine("a").acquire(WithManualRefresh())
			refresh := func() {
				if err := lease.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			refresh()
			refresh()
			if !lost {
				w.server.Edit(testBucket, testObject, map[string]string{keyTTL: "1s"})
			} else {
				w.inject(gcstest.Update, 1, gcstest.LoseReply())
				again := gcstest.NewBarrier()
				w.inject(gcstest.Update, 1, gcstest.Hold(again))
				go func() {
					w.arrived(again)
					w.server.Edit(testBucket, testObject, map[string]string{keyTTL: "1s"})
					again.Release()
				}()
				refresh()
			}
			refresh()
			if obj, _ := w.object(); obj.Metadata[keyTTL] != "1m0s" {
				t.Errorf("reply lost: %v: after the edit was met the metadata are %v", lost, obj.Metadata)
			}
			w.release(lease)
		})
	}
}

// TestObjectEdited: our nonce under a version that is not ours. The validity
// stays as it was, and the next refresh follows at once and undoes the edit.
func TestObjectEdited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		time.Sleep(10 * time.Second)
		w.server.Edit(testBucket, testObject, map[string]string{keyTTL: "1s", keyExpiresAt: "never", "note": "hello"})
		// The refresh after the edit fails: the edit alone must not renew.
		w.server.Inject(gcstest.Fault{Op: gcstest.Update, Skip: 1, Times: 1, Do: gcstest.FailStatus(503)})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		expires := lease.Expires()
		if err := lease.Refresh(ctx); err == nil {
			t.Error("the failed refresh succeeded")
		}
		if !lease.Expires().Equal(expires) {
			t.Errorf("an edit moved the validity from %v to %v", expires, lease.Expires())
		}
		sent := time.Now()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		took(t, "the refresh", sent, 0, 0)
		obj, _ := w.object()
		if obj.Metadata[keyTTL] != "1m0s" || obj.Metadata[keyExpiresAt] != timestamp(sent.Add(time.Minute)) || obj.Metadata["note"] != "hello" {
			t.Errorf("after the refresh the metadata are %v", obj.Metadata)
		}
		w.release(lease)
	})
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire(WithManualRefresh())
		w.server.Edit(testBucket, testObject, map[string]string{"note": "hello"})
		began := time.Now()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		took(t, "the refresh", began, 0, 0)
		if got := w.ops(""); got != "create update get update" {
			t.Errorf("requests are %q, want update get update", got)
		}
		w.release(lease)
	})
}

// TestNoCopyIsRefreshed: on a versioned bucket the holder of a lock that
// somebody deleted must not find, and refresh, the noncurrent copy.
func TestNoCopyIsRefreshed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.CreateBucket(testBucket, gcstest.Versioned())
		lease := w.machine("a").acquire()
		w.server.Delete(testBucket, testObject)
		if n := len(w.server.Noncurrent(testBucket, testObject)); n != 1 {
			t.Fatalf("%d noncurrent copies, want 1", n)
		}
		<-lease.Context().Done()
		w.lost(lease)
	})
}
