package bench

import (
	"context"
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
		b.Run(fmt.Sprintf("delay=%v", delay), func(b *testing.B) {
			s := benchSite(b, serverSetting{Delay: delay})
			lock, err := gcslock.New(s.bucket, "lock")
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			floor, ours := compare(b, s.requests, 10, func() error { return bareCycle(ctx, s.bucket.Object("floor")) }, func() error {
				lease, err := lock.Acquire(ctx)
				if err != nil {
					return err
				}
				return lease.Release(ctx)
			})
			report(b, floor, ours)
		})
	}
}

// BenchmarkRefresh is a refresh of a held lease, against a bare update of the
// metadata under the same preconditions, through the storage client.
func BenchmarkRefresh(b *testing.B) {
	for _, delay := range sized([]time.Duration{0, 20 * time.Millisecond}, []time.Duration{0}) {
		b.Run(fmt.Sprintf("delay=%v", delay), func(b *testing.B) { benchmarkRefresh(b, delay) })
	}
}

func benchmarkRefresh(b *testing.B, delay time.Duration) {
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
	w := s.bucket.Object("floor").NewWriter(ctx)
	w.ChunkSize = 0
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	attrs := w.Attrs()
	floor, ours := compare(b, s.requests, 10, func() error {
		attrs, err = s.bucket.Object("floor").
			If(storage.Conditions{GenerationMatch: attrs.Generation, MetagenerationMatch: attrs.Metageneration}).
			Update(ctx, storage.ObjectAttrsToUpdate{Metadata: map[string]string{"expires-at": time.Now().String()}})
		return err
	}, func() error { return lease.Refresh(ctx) })
	if err := lease.Release(ctx); err != nil {
		b.Fatal(err)
	}
	report(b, floor, ours)
}
