package fenced

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gcslock/gcslock/gcstest"
)

// big is content of more than two chunks.
func big() []byte { return bytes.Repeat([]byte("0123456789abcdef"), (2*chunkSize+chunkSize/2)/16) }

// onlyReader hides that its reader can be rewound.
type onlyReader struct{ io.Reader }

// lastChunk chooses the request that ends an upload in chunks.
func lastChunk(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Range"), "bytes") && !strings.HasSuffix(r.Header.Get("Content-Range"), "/*")
}

// TestStream: in chunks, and as one version.
func TestStream(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		o := w.acquire("a").open()
		w.server.ResetRequests()
		w.must(o.WriteFrom(w.ctx, onlyReader{bytes.NewReader(big())}))
		if got, want := w.ops("a"), "create create create create"; got != want {
			t.Errorf("three chunks are %q, want %q", got, want)
		}
		if got := w.holds(string(big())).ContentType; got != "text/plain" {
			t.Errorf("content type %q", got)
		}
		r, err := o.NewReader(w.ctx)
		w.must(err)
		got, err := io.ReadAll(r)
		w.must(errors.Join(err, r.Close()))
		if !bytes.Equal(got, big()) {
			t.Errorf("read %d other bytes", len(got))
		}
		w.must(o.WriteFrom(w.ctx, strings.NewReader("small")))
		w.reads(o, "small")
	})
}

// TestStreamFails: in each way, of a reader that can be rewound and of one that can't.
func TestStreamFails(t *testing.T) {
	twoChunks := big()[:chunkSize+1] // as few as there can be: the race detector makes bytes dear
	start := func(r *http.Request) bool { return r.URL.Query().Get("uploadType") == "resumable" }
	for name, tt := range map[string]struct {
		match    func(*http.Request) bool
		fault    gcstest.Action
		rewound  string // what the state is then; "" where the write fails
		consumed string
	}{
		"not begun":                    {start, gcstest.DropRequest(), "big", ""},
		"a chunk, sent again":          {lastChunk, gcstest.FailStatus(503), "big", "big"},
		"the upload is gone":           {lastChunk, gcstest.FailStatus(410), "big", ""},
		"done, and the reply was lost": {lastChunk, gcstest.GarbleReply(), "big", "big"},
		"done, and the connection cut": {lastChunk, gcstest.LoseReply(), "big", "big"},
	} {
		for kind, want := range map[string]string{"rewound": tt.rewound, "consumed": tt.consumed} {
			t.Run(name+", "+kind, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.put("0")
					o := w.acquire("a").open()
					w.server.Inject(gcstest.Fault{Object: "", Match: tt.match, Times: 1, Do: tt.fault})
					var r io.Reader = bytes.NewReader(append([]byte("skipped"), twoChunks...))
					_, _ = io.CopyN(io.Discard, r, int64(len("skipped")))
					if kind == "consumed" {
						r = onlyReader{r}
					}
					err := o.WriteFrom(w.ctx, r)
					if want == "" {
						w.is(err, []error{ErrUncertain}, "no io.Seeker")
						w.holds("0")
						return
					}
					w.must(err)
					w.holds(string(twoChunks))
				})
			})
		}
	}
}

// TestReaderFails: what the reader did not give is not written, and what it did is
// not either.
func TestReaderFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		o := w.acquire("a").open()
		broken := errors.New("broken")
		for _, n := range []int{0, 10, len(big())} {
			err := o.WriteFrom(w.ctx, io.MultiReader(bytes.NewReader(big()[:n]), iotest.ErrReader(broken)))
			w.is(err, nil, "nothing was written")
			if !errors.Is(err, broken) {
				t.Errorf("not the reader's error: %v", err)
			}
			w.holds("0")
		}
		w.must(o.Write(w.ctx, []byte("a")))
	})
}

// TestStreamIsFenced: a later holder claims while the stream is under way.
func TestStreamIsFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		a := w.acquire("a").open()
		paused := gcstest.NewBarrier()
		w.server.Inject(gcstest.Fault{Client: "a", Match: lastChunk, Times: 1, Do: gcstest.Hold(paused)})
		late := start(func() error { return a.WriteFrom(w.ctx, bytes.NewReader(big())) })
		w.arrived(paused)
		w.lose()
		b := w.acquire("b").open()
		paused.Release()
		w.is(<-late, []error{ErrFenced})
		w.reads(b, "0")
		w.must(b.Write(w.ctx, []byte("b")))
	})
}

// TestReaderOfOneVersion: a connection breaks in the middle, and the content has been
// replaced meanwhile.
func TestReaderOfOneVersion(t *testing.T) {
	for name, replaced := range map[string]bool{"it goes on": false, "it ends": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(strings.Repeat("0", 1000))
				o := w.acquire("a").open()
				w.inject("a", gcstest.Get, 1, gcstest.TruncateReply())
				r, err := o.NewReader(w.ctx)
				w.must(err)
				defer r.Close()
				half := make([]byte, 500)
				_, err = io.ReadFull(r, half)
				w.must(err)
				if replaced {
					w.must(o.Write(w.ctx, []byte(strings.Repeat("1", 1000))))
				}
				rest, err := io.ReadAll(r)
				if replaced && (err == nil || strings.Contains(string(rest), "1")) {
					t.Errorf("two versions in one: %q, %v", rest, err)
				}
				if !replaced && (err != nil || len(rest) != 500) {
					t.Errorf("the rest is %d bytes, %v", len(rest), err)
				}
			})
		})
	}
}

// TestReaderHangs: the beginning has a limit, and is tried again; the reader lives
// longer.
func TestReaderHangs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put("0")
		o := w.acquire("a").open()
		w.inject("a", gcstest.Get, 1, gcstest.Hang())
		r, err := o.NewReader(w.ctx)
		w.must(err)
		got, err := io.ReadAll(r)
		w.must(errors.Join(err, r.Close()))
		if string(got) != "0" {
			t.Errorf("read %q", got)
		}
	})
}
