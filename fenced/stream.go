package fenced

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/internal/inside"
)

// chunkSize is what a stream is sent in, and the memory that it takes. A multiple
// of 256 KiB, as the protocol of resumable uploads wants it.
const chunkSize = 8 << 20

// WriteFrom is [Object.Write] of what r gives until io.EOF, in bounded memory: one
// chunk of 8 MiB. If r fails, nothing is written, and the error is r's, wrapped.
// Other calls on the same Object wait until it returns.
//
// Chunks are sent again by the storage client where they fail for now. If the upload
// as a whole fails, and a look does not show that it was done, it is sent again from
// where r was at the call if r is an [io.Seeker]; else its error is returned,
// possibly with [ErrUncertain].
func (o *Object) WriteFrom(ctx context.Context, r io.Reader) error {
	if err := o.take(ctx, "write"); err != nil {
		return err
	}
	defer o.give()
	return o.put(ctx, "write", 0, newStream(r).send)
}

// A stream is content that is read while it is sent.
type stream struct {
	reader   io.Reader
	seeker   io.Seeker // nil: it can't be rewound
	start    int64
	failed   error // what became of the last attempt
	consumed bool
}

func newStream(r io.Reader) *stream {
	s := &stream{reader: r}
	if seeker, ok := r.(io.Seeker); ok {
		// A pipe is an *os.File too, and says here that it is none to seek in.
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			s.seeker, s.start = seeker, start
		}
	}
	return s
}

// send is a content.
func (s *stream) send(ctx context.Context, o *Object, attrs *storage.ObjectAttrs) (*storage.ObjectAttrs, inside.Outcome, error) {
	if err := s.rewind(); err != nil {
		return nil, inside.Permanent, err
	}
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	w := o.at(o.base).NewWriter(ctx)
	w.ChunkSize = chunkSize
	w.ChunkTransferTimeout = limitFor(chunkSize)
	w.ObjectAttrs = withName(w.ObjectAttrs, attrs)
	source := &source{Reader: s.reader}
	if _, err := io.Copy(w, source); err != nil && source.err != nil {
		abort() // before Close, which would end the upload with what there is
		_ = w.Close()
		return nil, inside.Permanent, fmt.Errorf("nothing was written, the reader failed: %w", source.err)
	}
	// Where a request failed, Close returns its error, as did Copy.
	made, outcome, err := o.close(w)
	if outcome == inside.Permanent && isGone(err) {
		outcome = inside.Unknown // of an upload that the server has ended, and may have done
	}
	s.failed = err
	return made, outcome, err
}

// rewind prepares another attempt.
func (s *stream) rewind() error {
	if !s.consumed {
		s.consumed = true
		return nil
	}
	if s.seeker == nil {
		return fmt.Errorf("not sent again, because the reader is no io.Seeker: %w", s.failed)
	}
	if _, err := s.seeker.Seek(s.start, io.SeekStart); err != nil {
		return fmt.Errorf("not sent again, because the reader can't be rewound: %w (after: %w)", err, s.failed)
	}
	return nil
}

// A source keeps its reader's error apart from those of requests.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// NewReader is [Object.Read] as a stream. What it gives is the content of one version
// from its beginning to its end, or an error: where the connection breaks, the storage
// client goes on in the middle under the same preconditions. The caller closes it.
// ctx has to outlive it. Other calls do not wait for it, and a write ends it.
func (o *Object) NewReader(ctx context.Context) (io.ReadCloser, error) {
	if err := o.take(ctx, "read"); err != nil {
		return nil, err
	}
	defer o.give()
	var r io.ReadCloser
	err := o.do(ctx, operation{name: "read", request: func(ctx context.Context) (outcome inside.Outcome, err error) {
		r, outcome, err = o.open(ctx, o.base)
		o.doubt = outcome == inside.Mismatch || outcome == inside.Absent
		return outcome, err
	}})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// open begins a download, within the time that a request may take; the rest is
// limited by ctx alone.
func (o *Object) open(ctx context.Context, v *storage.ObjectAttrs) (io.ReadCloser, inside.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	patience := time.AfterFunc(requestLimit, cancel)
	r, err := o.at(v).NewReader(ctx)
	if err != nil || !patience.Stop() {
		cancel()
		if err == nil {
			r.Close()
			err = context.DeadlineExceeded
		}
		outcome, err := outcomeOf("read", o.url, err)
		return nil, outcome, err
	}
	return &reader{r, cancel}, inside.Done, nil
}

type reader struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (r *reader) Close() error {
	defer r.cancel()
	return r.ReadCloser.Close()
}
