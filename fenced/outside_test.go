package fenced

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"cloud.google.com/go/storage"
	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/gcslock/gcslock/gcstest"
)

// TestConflict: what a person puts there, or takes away, is told and not overwritten.
func TestConflict(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"replaced": {func(w *world) { w.put("human") }, "was replaced"},
		"deleted":  {func(w *world) { w.server.Delete(testBucket, testState) }, "was deleted"},
		"copied onto itself": {func(w *world) {
			old, _ := w.server.Object(testBucket, testState)
			w.server.Put(testBucket, testState, old)
		}, "was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put("0")
				a := w.acquire("a")
				o := a.open()
				w.must(o.Write(w.ctx, []byte("a")))
				tt.change(w)
				before, there := w.server.Object(testBucket, testState)
				w.is(o.Write(w.ctx, []byte("b")), []error{ErrConflict}, tt.want, "open it again")
				_, err := o.Read(w.ctx)
				w.is(err, []error{ErrConflict})
				if after, still := w.server.Object(testBucket, testState); still != there || after.Generation != before.Generation {
					t.Error("what was changed from outside was overwritten")
				}
				w.must(a.open(WithInitial(nil)).Write(w.ctx, []byte("c")))
				w.holds("c")
				w.lose()
				w.put("human")
				w.is(a.openError(), []error{ErrFenced})
			})
		})
	}
}

// openError is the error of opening once more.
func (h *holder) openError() error {
	_, err := Open(h.ctx, h.lease, h.state())
	return err
}

// TestConflictOfFormerHolder: a change from outside and another holder look alike
// from afar; the lock tells them apart.
func TestConflictOfFormerHolder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		o := w.acquire("a").open()
		w.put("human")
		w.lose()
		w.is(o.Write(w.ctx, []byte("a")), []error{ErrFenced}, "its object was deleted")
		w.holds("human")
	})
}

// TestTwoOfOneLease: each takes the other for an outsider, and neither overwrites.
func TestTwoOfOneLease(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a")
		one, two := a.open(), a.open()
		w.must(one.Write(w.ctx, []byte("one")))
		w.is(two.Write(w.ctx, []byte("two")), []error{ErrConflict})
		w.must(one.Write(w.ctx, []byte("one")))
	})
}

// TestLateCreation: an earlier holder's creation comes when it counts for nothing.
func TestLateCreation(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.acquire("a")
		paused := gcstest.NewBarrier()
		w.inject("a", gcstest.Create, 1, gcstest.Hold(paused))
		late := start(func() error { _, err := Open(w.ctx, a.lease, a.state(), WithInitial([]byte("a"))); return err })
		w.arrived(paused)
		w.lose()
		b := w.acquire("b")
		if err := b.openError(); !errors.Is(err, storage.ErrObjectNotExist) {
			t.Errorf("before the late creation: %v", err)
		}
		paused.Release()
		w.is(<-late, []error{ErrFenced})
		w.holds("")
		if err := b.openError(); !errors.Is(err, storage.ErrObjectNotExist) {
			t.Errorf("after it: %v", err)
		}
		w.reads(b.open(WithInitial([]byte("b"))), "b")
	})
}

// TestPausedInitialWrite: a holder that was paused just before it fills the object
// that it made. The next one is told that there is none, and it stays so.
func TestPausedInitialWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.acquire("a")
		paused := gcstest.NewBarrier()
		w.server.Inject(gcstest.Fault{Client: "a", Object: testState, Op: gcstest.Create, Skip: 1, Times: 1, Do: gcstest.Hold(paused)})
		late := start(func() error { _, err := Open(w.ctx, a.lease, a.state(), WithInitial([]byte("a"))); return err })
		w.arrived(paused)
		w.lose()
		b := w.acquire("b")
		if err := b.openError(); !errors.Is(err, storage.ErrObjectNotExist) {
			t.Errorf("an object without content: %v", err)
		}
		paused.Release()
		w.is(<-late, []error{ErrFenced})
		w.holds("")
	})
}

// TestCreationReplyLost: of the empty object, and of its content.
func TestCreationReplyLost(t *testing.T) {
	for skip := range 2 {
		inWorld(t, func(w *world) {
			w.server.Inject(gcstest.Fault{Object: testState, Op: gcstest.Create, Skip: skip, Times: 1, Do: gcstest.LoseReply()})
			w.reads(w.acquire("a").open(WithInitial([]byte("a"))), "a")
			if n := len(w.server.Requests()); n != 7 {
				t.Errorf("%d requests, want 7", n)
			}
		})
	}
}

// TestStandInCannotFence: a server that does not count changes of the metadata is no
// ground to build on, and is told from one that does.
func TestStandInCannotFence(t *testing.T) {
	inWorld(t, func(w *world) {
		stock, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, InitialObjects: []fakestorage.Object{
			{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: testBucket, Name: testState}},
		}})
		w.must(err)
		h := w.acquire("a")
		h.bucket = w.bucket("a", func(http.RoundTripper) http.RoundTripper { return handler{stock.HTTPHandler()} })
		w.is(h.openError(), nil, "cannot fence")
	})
}

// A handler serves requests in process.
type handler struct{ http.Handler }

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = io.NopCloser(http.NoBody)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}
