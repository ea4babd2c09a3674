package fenced

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// TestStateGoesOn: from holder to holder, at the price that the documentation says.
func TestStateGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		for i, name := range []string{"a", "b"} {
			h := w.acquire(name)
			w.server.ResetRequests()
			o := h.open()
			if got := w.ops(name); got != "get update" {
				t.Errorf("Open is %q on the state, want get update", got)
			}
			w.reads(o, fmt.Sprint(i))
			w.must(o.Write(w.ctx, []byte("x")))
			w.must(o.Update(w.ctx, func(old []byte) ([]byte, error) {
				return fmt.Append(nil, i+len(old)), nil
			}))
			if got := w.ops(name); got != "get update get create get create" {
				t.Errorf("with a read, a write and an update it is %q", got)
			}
			if got := w.holds(fmt.Sprint(i + 1)).Metadata[keyFence]; got != fmt.Sprint(h.lease.Token()) {
				t.Errorf("fence is %q, want the token %d", got, h.lease.Token())
			}
			w.must(h.lease.Release(w.ctx))
		}
	})
}

// TestMissingState: an object that does not exist is made where that is asked for.
func TestMissingState(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.acquire("a")
		_, err := Open(w.ctx, a.lease, a.state())
		w.is(err, nil, "WithInitial")
		if !errors.Is(err, storage.ErrObjectNotExist) {
			t.Errorf("not ErrObjectNotExist: %v", err)
		}
		w.server.ResetRequests()
		o := a.open(WithInitial([]byte("new")), WithContentType("text/plain"))
		if got := w.ops("a"); got != "get create create" {
			t.Errorf("Open is %q", got)
		}
		made := w.holds("new")
		if _, empty := made.Metadata[keyEmpty]; empty || made.ContentType != "text/plain" {
			t.Errorf("made with %v, %s", made.Metadata, made.ContentType)
		}
		w.reads(o, "new")
		w.reads(a.open(WithInitial([]byte("other")), WithContentType("image/png")), "new")
		if got := w.holds("new").ContentType; got != "text/plain" {
			t.Errorf("the content type of an object that exists became %s", got)
		}
	})
}

// TestAttributesSurvive: what the object had, it has after a write.
func TestAttributesSurvive(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.acquire("a")
		out := w.bucket(human, nil).Object(testState).NewWriter(w.ctx)
		out.ContentType, out.CacheControl = "text/csv", "no-store"
		out.ContentEncoding, out.ContentLanguage, out.ContentDisposition = "br", "cy", "inline"
		out.Metadata = map[string]string{"Team": "blue", "run": "1"}
		w.must(out.Close())
		o := a.open()
		w.server.Edit(testBucket, testState, map[string]string{"run": "2"})
		w.must(o.Write(w.ctx, []byte("new")))
		attrs, err := a.state().Attrs(w.ctx)
		w.must(err)
		if attrs.ContentType != "text/csv" || attrs.CacheControl != "no-store" || attrs.ContentEncoding != "br" ||
			attrs.ContentLanguage != "cy" || attrs.ContentDisposition != "inline" ||
			attrs.Metadata["Team"] != "blue" || attrs.Metadata["run"] != "2" {
			t.Errorf("after a write: %+v", attrs)
		}
	})
}

// TestSuccessor: what a write carries over, also where gcstest does not keep it.
func TestSuccessor(t *testing.T) {
	o := &Object{fence: "7", session: "s"}
	was := &storage.ObjectAttrs{
		Name: "x", ContentType: "a/b", ContentEncoding: "br", ContentLanguage: "cy", ContentDisposition: "inline",
		CacheControl: "no-store", CustomTime: time.Unix(1, 0), StorageClass: "NEARLINE",
		KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/3",
		Metadata:   map[string]string{"mine": "1", keyFence: "6", keyWrite: "r.4", keyEmpty: "true"},
		Generation: 9, Size: 3,
	}
	want := *was
	want.Name, want.Generation, want.Size = "", 0, 0
	want.KMSKeyName = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
	want.Metadata = map[string]string{"mine": "1", keyFence: "7", keyWrite: "s.5"}
	if got := o.successor(was, 5); !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, want %+v", *got, want)
	}
	if len(was.Metadata) != 4 {
		t.Error("the version's own metadata were changed")
	}
}

// TestFencedOff: an earlier holder that does not know that it is one.
func TestFencedOff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		stale := a.open()
		w.lose()
		b := w.acquire("b")
		w.reads(stale, "0") // nobody has claimed since
		fresh := b.open()
		w.must(fresh.Write(w.ctx, []byte("b")))
		err := stale.Write(w.ctx, []byte("a"))
		w.is(err, []error{ErrFenced}, `it is now held by "b"`, "write")
		if !errors.Is(err, gcslock.ErrLockAbandoned) || !errors.Is(a.lease.Err(), gcslock.ErrLockAbandoned) {
			t.Errorf("the lease goes on: %v, %v", a.lease.Err(), err)
		}
		w.holds("b")
		w.server.ResetRequests()
		_, err = stale.Read(w.ctx)
		w.is(err, []error{ErrFenced}, "read")
		w.is(stale.Update(w.ctx, nil), []error{ErrFenced}, "update")
		if got := w.ops("a"); got != "" {
			t.Errorf("what is fenced off still sends %q", got)
		}
		w.reads(fresh, "b")
	})
}

// TestReadIsFenced: what a later holder is about to change is not read as current.
func TestReadIsFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		stale := w.acquire("a").open()
		w.lose()
		w.acquire("b").open()
		if r, err := stale.NewReader(w.ctx); err == nil {
			t.Error("a stream begins")
			r.Close()
		}
		_, err := stale.Read(w.ctx)
		w.is(err, []error{ErrFenced})
	})
}

// TestReleased: the lease's end is the end, also while nobody else has the lock.
func TestReleased(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		o := a.open()
		w.must(a.lease.Release(w.ctx))
		err := o.Write(w.ctx, []byte("a"))
		w.is(err, []error{ErrFenced})
		if !errors.Is(err, gcslock.ErrNotHeld) {
			t.Errorf("not ErrNotHeld: %v", err)
		}
		_, err = Open(w.ctx, a.lease, a.state())
		w.is(err, []error{ErrFenced}, "open")
		w.holds("0")
	})
}

// TestLateClaim: an earlier holder claims after the later one. It writes nothing, and
// the later one goes on.
func TestLateClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		paused := gcstest.NewBarrier()
		w.inject("a", gcstest.Update, 1, gcstest.Hold(paused))
		late := start(func() error { _, err := Open(w.ctx, a.lease, a.state()); return err })
		w.arrived(paused)
		w.lose()
		b := w.acquire("b").open()
		paused.Release()
		// a's claim finds another version: it looks, and claims that.
		w.is(<-late, []error{ErrFenced}, `it is now held by "b"`)
		if got := w.ops("a"); got != "get update get update" {
			t.Errorf("the late claim was %q", got)
		}
		w.server.ResetRequests()
		w.must(b.Update(w.ctx, func(old []byte) ([]byte, error) { return append(old, 'b'), nil }))
		if got := w.ops("b"); got != "get get update get create" {
			t.Errorf("the overtaken holder goes on with %q", got)
		}
		w.holds("0b")
	})
}

// TestGzipIsRefused: a download would undo the encoding, and an upload not do it.
func TestGzipIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.acquire("a")
		out := w.bucket(human, nil).Object(testState).NewWriter(w.ctx)
		out.ContentEncoding = "gzip"
		w.must(out.Close())
		_, err := Open(w.ctx, a.lease, a.state())
		w.is(err, nil, "open", "content encoding is gzip")
	})
}

// TestConcurrentUse: the calls of one Object come one after the other, and no update
// is lost.
func TestConcurrentUse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("")
		o := w.acquire("a").open()
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				w.must(o.Update(w.ctx, func(old []byte) ([]byte, error) { return append(old, 'x'), nil }))
			})
			calls.Go(func() {
				if _, err := o.Read(w.ctx); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		w.holds("xxxxxxxx")
		if n := strings.Count(w.ops("a"), "update"); n != 1 {
			t.Errorf("%d claims: the calls take each other for outsiders", n)
		}
	})
}

// TestTurnIsLimited: who waits for another call on the same Object waits no longer
// than its own context.
func TestTurnIsLimited(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		o := w.acquire("a").open()
		paused := gcstest.NewBarrier()
		w.inject("a", gcstest.Create, 1, gcstest.Hold(paused))
		first := start(func() error { return o.Write(w.ctx, []byte("a")) })
		w.arrived(paused)
		began := time.Now()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err := o.Read(ctx)
		_, streamErr := o.NewReader(ctx)
		for _, err := range []error{err, streamErr, o.Write(ctx, nil), o.WriteFrom(ctx, nil), o.Update(ctx, nil)} {
			w.is(err, nil, "deadline exceeded")
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v, want 1s", took)
		}
		paused.Release()
		w.must(<-first)
		w.holds("a")
	})
}

// TestReadsOfTheXMLAPI: what the storage client uses unless told otherwise, with
// preconditions in headers and errors without a status.
func TestReadsOfTheXMLAPI(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		client, err := storage.NewClient(w.ctx, option.WithoutAuthentication(), option.WithEndpoint("http://gcstest.invalid/storage/v1/"),
			option.WithHTTPClient(&http.Client{Transport: w.server.Transport()}))
		w.must(err)
		defer client.Close()
		o, err := Open(w.ctx, a.lease, client.Bucket(testBucket).Object(testState))
		w.must(err)
		w.server.Edit(testBucket, testState, map[string]string{"note": "moves the version"})
		w.reads(o, "0")
		w.server.Delete(testBucket, testState)
		began := time.Now()
		_, err = o.Read(w.ctx)
		w.is(err, []error{ErrConflict}, "was deleted")
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}
