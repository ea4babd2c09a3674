package preflight

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/gcslock/gcslock/internal/inside"
)

const (
	// nameLimit is Cloud Storage's, in bytes.
	nameLimit = 1024
	// suffixRoom is for what the probes' names add to the lock's, SelfCheck's
	// among them.
	suffixRoom = 100
	// cleanLimit bounds the removal of the probes in all.
	cleanLimit = 15 * time.Second
)

// probes are objects beside the lock whose names begin like the lock's, so that
// what is bound to a prefix, of IAM conditions for example, holds for them, too.
type probes struct {
	bucket *storage.BucketHandle
	prefix string
	made   int
	// there are those that may exist, with their generations; 0: not known.
	there  map[string]int64
	sweep  bool  // there may be others, which a listing shows
	hidden error // what the read of an absent one was refused with
}

func newProbes(bucket *storage.BucketHandle, object string) *probes {
	if len(object) > nameLimit-suffixRoom {
		cut := nameLimit - suffixRoom
		for !utf8.RuneStart(object[cut]) {
			cut--
		}
		object = object[:cut]
	}
	return &probes{
		bucket: bucket, there: map[string]int64{},
		prefix: object + ".gcslock-check-" + strings.ToLower(rand.Text()[:12]) + "-",
	}
}

// next is a name that was not used before.
func (p *probes) next() string {
	p.made++
	return fmt.Sprintf("%s%d", p.prefix, p.made)
}

func (p *probes) url(name string) string { return inside.URL(p.bucket.BucketName(), name) }

// handle is a fresh one for each call: Retryer on a handle that has one already
// changes the configuration that they share.
func (p *probes) handle(name string) *storage.ObjectHandle {
	return p.bucket.Object(name).Retryer(storage.WithPolicy(storage.RetryNever))
}

// create makes a probe as a lock object is made. Nobody else knows the name: an
// attempt that finds it taken follows one of ours whose reply was lost.
func (p *probes) create(ctx context.Context, name string) (sample, *storage.ObjectAttrs, error) {
	var attrs *storage.ObjectAttrs
	p.there[name] = 0
	s, err := ask(ctx, func(ctx context.Context) error {
		w := p.handle(name).If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
		w.ChunkSize = 0
		w.ContentType = "application/octet-stream"
		w.CacheControl = "no-store"
		w.Metadata = map[string]string{"gcslock-check": "a probe; delete it if it is still here"}
		if err := w.Close(); err != nil {
			return err
		}
		attrs = w.Attrs()
		return nil
	})
	outcome := inside.Done
	if err != nil {
		outcome, err = inside.Failed("create", p.url(name), err)
	}
	switch {
	case outcome == inside.Mismatch && s.failed > 0:
		// An attempt whose reply was lost had made it.
		if attrs, err = p.handle(name).Attrs(ctx); err == nil {
			p.there[name] = attrs.Generation
		}
	case outcome == inside.Done:
		p.there[name] = attrs.Generation
	case outcome == inside.Permanent && s.failed == 0:
		delete(p.there, name)
	}
	return s, attrs, err
}

func (p *probes) read(ctx context.Context, name string) (sample, error) {
	s, err := ask(ctx, func(ctx context.Context) error {
		_, err := p.handle(name).Attrs(ctx)
		return err
	})
	return s, p.worded("read", name, err)
}

// update changes the metadata once. Only the generation is a precondition, so
// that an attempt whose outcome is unknown may be repeated.
func (p *probes) update(ctx context.Context, name string) (sample, error) {
	s, err := ask(ctx, func(ctx context.Context) error {
		_, err := p.handle(name).If(storage.Conditions{GenerationMatch: p.there[name]}).
			Update(ctx, storage.ObjectAttrsToUpdate{Metadata: map[string]string{"refresh": rand.Text()}})
		return err
	})
	return s, p.worded("update", name, err)
}

// remove deletes by generation, which leaves no noncurrent copy on a versioned
// bucket.
func (p *probes) remove(ctx context.Context, name string) (sample, error) {
	s, err := ask(ctx, func(ctx context.Context) error {
		return p.handle(name).Generation(p.there[name]).Delete(ctx)
	})
	if err == nil || errors.Is(err, storage.ErrObjectNotExist) {
		delete(p.there, name)
		return s, nil
	}
	return s, p.worded("delete", name, err)
}

// lookForAbsent reads a probe that was removed.
func (p *probes) lookForAbsent(ctx context.Context, name string) {
	_, err := ask(ctx, func(ctx context.Context) error {
		_, err := p.handle(name).Attrs(ctx)
		return err
	})
	if err != nil && !errors.Is(err, storage.ErrObjectNotExist) && ctx.Err() == nil {
		p.hidden = err
	}
}

func (p *probes) worded(op, name string, err error) error {
	if err != nil {
		_, err = inside.Failed(op, p.url(name), err)
	}
	return err
}

// clean removes what is left of the probes, and returns what it could not
// remove.
func (p *probes) clean(ctx context.Context) (left []string) {
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	for name := range p.there {
		if !p.gone(ctx, name) {
			left = append(left, p.url(name))
		}
	}
	if p.sweep {
		left = append(left, p.sweepUp(ctx)...)
	}
	slices.Sort(left)
	return slices.Compact(left)
}

// gone removes a probe, once its generation is known.
func (p *probes) gone(ctx context.Context, name string) bool {
	if p.there[name] == 0 {
		_, err := ask(ctx, func(ctx context.Context) error {
			attrs, err := p.handle(name).Attrs(ctx)
			if err == nil {
				p.there[name] = attrs.Generation
			}
			return err
		})
		if err != nil {
			return errors.Is(err, storage.ErrObjectNotExist)
		}
	}
	_, err := p.remove(ctx, name)
	return err == nil
}

// sweepUp removes all objects with the probes' prefix, of which a SelfCheck that
// failed may have left one. Its error has named it, where it can't be listed.
func (p *probes) sweepUp(ctx context.Context) (left []string) {
	objects := p.bucket.Objects(ctx, &storage.Query{Prefix: p.prefix, Versions: true})
	for {
		attrs, err := objects.Next()
		if errors.Is(err, iterator.Done) || err != nil {
			return left
		}
		p.there[attrs.Name] = attrs.Generation
		if !p.gone(ctx, attrs.Name) {
			left = append(left, p.url(attrs.Name))
		}
	}
}
