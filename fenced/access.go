package fenced

import (
	"context"
	"errors"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/internal/inside"
)

// Read returns the content as of the claim or of our last write. The server gives it
// only while no later holder has claimed the object; then the error is [ErrFenced].
//
// Requests that fail for now are sent again until ctx ends; in this as in the other
// methods, give it a context that ends with the lease.
func (o *Object) Read(ctx context.Context) ([]byte, error) {
	data, _, err := o.read(ctx, "read")
	return data, err
}

// read tells the generation of the content, too.
func (o *Object) read(ctx context.Context, name string) (data []byte, generation int64, err error) {
	if err := o.take(ctx, name); err != nil {
		return nil, 0, err
	}
	defer o.give()
	err = o.do(ctx, operation{name: name, request: func(ctx context.Context) (outcome inside.Outcome, err error) {
		data, outcome, err = o.download(ctx, o.base)
		o.doubt = outcome == inside.Mismatch || outcome == inside.Absent
		return outcome, err
	}})
	return data, o.base.Generation, err
}

// Write replaces the content. It is nil once the content was in the object, under
// the lock: also if a later holder has claimed the object since, as that one has
// found it there. [ErrFenced] once the lock is no longer held, [ErrConflict] if the
// object was replaced or deleted from outside, and nothing is overwritten then. An
// error that is not [ErrUncertain], too, means that the write was not done and will
// not be.
//
// Requests that fail for now, or whose reply is lost, are looked after until ctx
// ends.
func (o *Object) Write(ctx context.Context, data []byte) error {
	if err := o.take(ctx, "write"); err != nil {
		return err
	}
	defer o.give()
	return o.put(ctx, "write", 0, contentOf(data))
}

// Update replaces the content by what fn makes of it. If fn fails, nothing is
// written, and its error is returned as it is. fn is called again where the content
// has changed in between, by another call on the same Object or by an earlier write
// whose reply was lost. The errors are those of Read and Write.
func (o *Object) Update(ctx context.Context, fn func(old []byte) ([]byte, error)) error {
	for {
		old, generation, err := o.read(ctx, "update")
		if err != nil {
			return err
		}
		data, err := fn(old)
		if err != nil {
			return err
		}
		if err := o.replace(ctx, generation, data); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// replace is a write over one generation.
func (o *Object) replace(ctx context.Context, generation int64, data []byte) error {
	if err := o.take(ctx, "update"); err != nil {
		return err
	}
	defer o.give()
	return o.put(ctx, "update", generation, contentOf(data))
}

var errMoved = errors.New("the content has changed")

// A content is sent to replace a version.
type content func(ctx context.Context, o *Object, attrs *storage.ObjectAttrs) (*storage.ObjectAttrs, inside.Outcome, error)

// contentOf is content that is sent in one request.
func contentOf(data []byte) content {
	return func(ctx context.Context, o *Object, attrs *storage.ObjectAttrs) (*storage.ObjectAttrs, inside.Outcome, error) {
		return o.upload(ctx, o.at(o.base), attrs, data)
	}
}

// put writes the content over the generation, or over any if that is 0.
func (o *Object) put(ctx context.Context, name string, over int64, send content) error {
	o.calls++
	call := o.calls
	return o.do(ctx, operation{name: name, call: call, request: func(ctx context.Context) (inside.Outcome, error) {
		if over != 0 && o.base.Generation != over {
			return inside.Permanent, errMoved
		}
		attrs, outcome, err := send(ctx, o, o.successor(o.base, call))
		switch outcome {
		case inside.Done:
			o.base, o.done, o.unsure = attrs, call, 0
		case inside.Mismatch, inside.Absent:
			o.doubt = true
		case inside.Unknown:
			o.doubt, o.unsure = true, call
		}
		return outcome, err
	}})
}
