package gcstest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
)

// IgnoredError is SelfCheck's verdict on an endpoint that a lock can't rely on.
type IgnoredError struct {
	// Ignored names each thing that a lock needs and the endpoint does not do,
	// for example "update: ifMetagenerationMatch".
	Ignored []string
}

// Error implements error.
func (e *IgnoredError) Error() string {
	return "gcstest: the endpoint ignores what a lock needs: " + strings.Join(e.Ignored, "; ")
}

// SelfCheck tells whether the endpoint behind the bucket handle does what a lock
// needs: create only if absent, update and delete only the version that is
// meant, metageneration and updated that move with each update, a generation
// that doesn't, and a new generation for a new object. nil means that it does;
// an error that is an *IgnoredError names what it doesn't do; any other error
// means that a request failed for another reason.
//
// It needs permission to create, read, update and delete objects, and makes
// about twenty requests on one object with a random name under prefix, which it
// removes in any case, on a context of its own. It waits where the endpoint
// asks for that with 429. The client's retries are off for its requests.
func SelfCheck(ctx context.Context, bucket *storage.BucketHandle, prefix string) (err error) {
	c := &check{bucket: bucket, name: prefix + "gcstest-self-check-" + strings.ToLower(rand.Text())}
	defer func() {
		if failed := c.clean(context.WithoutCancel(ctx)); failed != nil {
			err = errors.Join(err, fmt.Errorf("gcstest: self-check could not remove %s: %w", c.name, failed))
		}
	}()
	failed := c.run(ctx)
	if failed != nil {
		failed = fmt.Errorf("gcstest: self-check: %w", failed)
	}
	if len(c.ignored) > 0 {
		return errors.Join(&IgnoredError{Ignored: c.ignored}, failed)
	}
	return failed
}

const (
	requestLimit = 10 * time.Second
	rateTries    = 10
	ratePause    = 1100 * time.Millisecond // Google's limit is one change a second
	// clockTick is longer than the resolution of an endpoint's timestamps.
	clockTick = 10 * time.Millisecond
	// elsewhere is far from any number that a version has by then.
	elsewhere = 1000
)

type check struct {
	bucket  *storage.BucketHandle
	name    string
	seen    []int64 // generations
	ignored []string
}

func (c *check) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.creates, c.updates, c.moves, c.deletes, c.renews,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) creates(ctx context.Context) error {
	if _, err := c.create(ctx); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return c.refuses(ctx, "create: ifGenerationMatch=0", func(ctx context.Context) error {
		_, err := c.create(ctx)
		return err
	})
}

func (c *check) updates(ctx context.Context) error {
	now, err := c.fresh(ctx)
	if err != nil {
		return err
	}
	err = c.refuses(ctx, "update: ifGenerationMatch", func(ctx context.Context) error {
		_, err := c.update(ctx, now.Generation+elsewhere, now.Metageneration)
		return err
	})
	if err != nil {
		return err
	}
	if now, err = c.fresh(ctx); err != nil {
		return err
	}
	return c.refuses(ctx, "update: ifMetagenerationMatch", func(ctx context.Context) error {
		_, err := c.update(ctx, now.Generation, now.Metageneration+elsewhere)
		return err
	})
}

// moves makes an update that is right, and looks at what it changed.
func (c *check) moves(ctx context.Context) error {
	before, err := c.fresh(ctx)
	if err != nil {
		return err
	}
	if err := sleep(ctx, clockTick); err != nil {
		return err
	}
	reply, err := c.update(ctx, before.Generation, before.Metageneration)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	after, err := c.fresh(ctx)
	if err != nil {
		return err
	}
	c.expect("update: metageneration moves", after.Metageneration != before.Metageneration)
	c.expect("update: metageneration in the reply", reply.Metageneration == after.Metageneration)
	c.expect("update: generation stays", after.Generation == before.Generation)
	c.expect("update: updated moves", after.Updated.After(before.Updated))
	return nil
}

func (c *check) deletes(ctx context.Context) error {
	for _, probe := range []struct {
		what                     string
		selector, match, metaOff int64
	}{
		{what: "delete: ifGenerationMatch", match: elsewhere},
		{what: "delete: ifMetagenerationMatch", metaOff: elsewhere},
		{what: "delete: generation", selector: elsewhere},
	} {
		now, err := c.fresh(ctx)
		if err != nil {
			return err
		}
		err = c.refuses(ctx, probe.what, func(ctx context.Context) error {
			if probe.selector != 0 {
				return c.object().Generation(now.Generation + probe.selector).Delete(ctx)
			}
			return c.object().If(storage.Conditions{
				GenerationMatch:     now.Generation + probe.match,
				MetagenerationMatch: now.Metageneration + probe.metaOff,
			}).Delete(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// renews makes a delete that is right, and a new object.
func (c *check) renews(ctx context.Context) error {
	now, err := c.fresh(ctx)
	if err != nil {
		return err
	}
	err = patiently(ctx, func(ctx context.Context) error {
		return c.object().Generation(now.Generation).If(storage.Conditions{
			GenerationMatch: now.Generation, MetagenerationMatch: now.Metageneration,
		}).Delete(ctx)
	})
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	_, err = c.attrs(ctx)
	c.expect("delete: the object goes", statusOf(err) == http.StatusNotFound)
	before := slices.Clone(c.seen)
	next, err := c.fresh(ctx)
	if err != nil {
		return err
	}
	c.expect("create: a new generation", !slices.Contains(before, next.Generation))
	return nil
}

// refuses tries what must not succeed.
func (c *check) refuses(ctx context.Context, what string, try func(context.Context) error) error {
	err := patiently(ctx, try)
	switch {
	case err == nil:
		c.ignored = append(c.ignored, what)
		return nil
	case statusOf(err) == http.StatusPreconditionFailed, statusOf(err) == http.StatusNotFound:
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (c *check) expect(what string, ok bool) {
	if !ok {
		c.ignored = append(c.ignored, what)
	}
}

// object is a fresh handle: Retryer on one that has a Retryer already changes
// the configuration that they share.
func (c *check) object() *storage.ObjectHandle {
	return c.bucket.Object(c.name).Retryer(storage.WithPolicy(storage.RetryNever))
}

func (c *check) create(ctx context.Context) (attrs *storage.ObjectAttrs, err error) {
	err = patiently(ctx, func(ctx context.Context) error {
		w := c.object().If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
		w.ChunkSize = 0
		if err := w.Close(); err != nil {
			return err
		}
		attrs = w.Attrs()
		c.seen = append(c.seen, attrs.Generation)
		return nil
	})
	return attrs, err
}

func (c *check) update(ctx context.Context, generation, metageneration int64) (attrs *storage.ObjectAttrs, err error) {
	err = patiently(ctx, func(ctx context.Context) error {
		attrs, err = c.object().If(storage.Conditions{
			GenerationMatch: generation, MetagenerationMatch: metageneration,
		}).Update(ctx, storage.ObjectAttrsToUpdate{Metadata: map[string]string{"self-check": rand.Text()}})
		return err
	})
	return attrs, err
}

func (c *check) attrs(ctx context.Context) (attrs *storage.ObjectAttrs, err error) {
	err = patiently(ctx, func(ctx context.Context) error {
		attrs, err = c.object().Attrs(ctx)
		return err
	})
	return attrs, err
}

// fresh reads the object, and makes it again where a probe that should have
// been refused has removed it.
func (c *check) fresh(ctx context.Context) (*storage.ObjectAttrs, error) {
	attrs, err := c.attrs(ctx)
	if statusOf(err) == http.StatusNotFound {
		attrs, err = c.create(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	c.seen = append(c.seen, attrs.Generation)
	return attrs, nil
}

// clean removes each generation that was seen, so that a versioned bucket keeps
// none, and what may be live beside them.
func (c *check) clean(ctx context.Context) error {
	slices.Sort(c.seen)
	for _, generation := range slices.Compact(c.seen) {
		err := patiently(ctx, func(ctx context.Context) error { return c.object().Generation(generation).Delete(ctx) })
		if err != nil && statusOf(err) != http.StatusNotFound {
			return err
		}
	}
	err := patiently(ctx, func(ctx context.Context) error { return c.object().Delete(ctx) })
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// patiently tries again while there have been too many changes, and limits each
// request.
func patiently(ctx context.Context, try func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		err := try(limited)
		cancel()
		if statusOf(err) != http.StatusTooManyRequests || attempt == rateTries {
			return err
		}
		if sleep(ctx, ratePause) != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// statusOf is the HTTP status that an error stands for; 0 if none.
func statusOf(err error) int {
	var api *googleapi.Error
	switch {
	case errors.Is(err, storage.ErrObjectNotExist):
		return http.StatusNotFound
	case errors.As(err, &api):
		return api.Code
	}
	return 0
}
