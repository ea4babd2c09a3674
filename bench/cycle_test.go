package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
)

// BenchmarkCycle is an uncontended acquisition and its release, against a bare create
// and delete through the storage client.
func BenchmarkCycle(b *testing.B) {
	for _, delay := range sized([]time.Duration{0, 20 * time.Millisecond}, []time.Duration{0}) {
		b.Run(fmt.Sprintf("delay=%v", delay), func(b *testing.B) { benchCycle(b, delay, bareCycle) })
	}
}

// BenchmarkCycleAlike is the same against the requests that a lock has to send,
// see alikeCycle: what is left is the lock's own.
func BenchmarkCycleAlike(b *testing.B) { benchCycle(b, 0, alikeCycle) }

// A bare is a floor: requests for an object, sent through the storage client.
type bare func(ctx context.Context, object *storage.ObjectHandle) error

func benchCycle(b *testing.B, delay time.Duration, cycle bare) {
	s := benchSite(b, serverSetting{Delay: delay})
	lock, err := gcslock.New(s.bucket, "lock")
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	floor, ours := compare(b, s.requests, 10, func() error { return cycle(ctx, s.bucket.Object("floor")) }, func() error {
		lease, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	})
	report(b, floor, ours)
}

// alikeCycle is a create and a delete that write and ask for what a lock's do: the
// metadata that competitors judge by, both numbers of the version, and a deadline
// for each request.
func alikeCycle(ctx context.Context, object *storage.ObjectHandle) error {
	object = object.Retryer(storage.WithPolicy(storage.RetryNever))
	attrs, err := alikeCreate(ctx, object)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return object.Generation(attrs.Generation).If(at(attrs)).Delete(ctx)
}

func alikeCreate(ctx context.Context, object *storage.ObjectHandle) (*storage.ObjectAttrs, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now := time.Now().UTC().Format(time.RFC3339Nano)
	w := object.If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
	w.ChunkSize, w.SendCRC32C = 0, true
	w.ContentType, w.CacheControl = "application/octet-stream", "no-store"
	w.Metadata = map[string]string{
		"owner": "host/12345", "host": "host", "pid": "12345", "ttl": "1m0s", "acquired-at": now,
		"expires-at": now, "nonce": rand.Text() + "000000", "refresh": rand.Text()[:16],
	}
	err := w.Close()
	return w.Attrs(), err
}

func at(attrs *storage.ObjectAttrs) storage.Conditions {
	return storage.Conditions{GenerationMatch: attrs.Generation, MetagenerationMatch: attrs.Metageneration}
}

// BenchmarkRefresh is a refresh of a held lease, against a bare update of the
// metadata under the same preconditions, through the storage client.
func BenchmarkRefresh(b *testing.B) {
	for _, delay := range sized([]time.Duration{0, 20 * time.Millisecond}, []time.Duration{0}) {
		b.Run(fmt.Sprintf("delay=%v", delay), func(b *testing.B) { benchRefresh(b, delay, emptyCreate, bareUpdate) })
	}
}

func emptyCreate(ctx context.Context, object *storage.ObjectHandle) (*storage.ObjectAttrs, error) {
	w := object.NewWriter(ctx)
	w.ChunkSize = 0
	err := w.Close()
	return w.Attrs(), err
}

func bareUpdate(ctx context.Context, object *storage.ObjectHandle) (*storage.ObjectAttrs, error) {
	return object.Update(ctx, storage.ObjectAttrsToUpdate{Metadata: map[string]string{"expires-at": time.Now().String()}})
}

// BenchmarkRefreshAlike is the same against an update of the same keys of an object
// like a lock's, with a deadline.
func BenchmarkRefreshAlike(b *testing.B) {
	benchRefresh(b, 0, alikeCreate, func(ctx context.Context, object *storage.ObjectHandle) (*storage.ObjectAttrs, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return object.Update(ctx, storage.ObjectAttrsToUpdate{Metadata: map[string]string{
			"expires-at": time.Now().UTC().Format(time.RFC3339Nano), "refresh": rand.Text()[:16],
		}})
	})
}

type asking func(ctx context.Context, object *storage.ObjectHandle) (*storage.ObjectAttrs, error)

func benchRefresh(b *testing.B, delay time.Duration, create, update asking) {
	s := benchSite(b, serverSetting{Delay: delay})
	ctx := context.Background()
	lock, err := gcslock.New(s.bucket, "lock", gcslock.WithManualRefresh())
	if err != nil {
		b.Fatal(err)
	}
	lease, err := lock.Acquire(ctx)
	if err != nil {
		b.Fatal(err)
	}
	attrs, err := create(ctx, s.bucket.Object("floor"))
	if err != nil {
		b.Fatal(err)
	}
	floor, ours := compare(b, s.requests, 10, func() error {
		attrs, err = update(ctx, s.bucket.Object("floor").If(at(attrs)))
		return err
	}, func() error { return lease.Refresh(ctx) })
	if err := lease.Release(ctx); err != nil {
		b.Fatal(err)
	}
	report(b, floor, ours)
}
