package bench

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/storage"
)

// bareCycle is the floor: a create and a delete, through the storage client.
func bareCycle(ctx context.Context, object *storage.ObjectHandle) error {
	generation, err := bareCreate(ctx, object)
	if err != nil {
		return err
	}
	return bareDelete(ctx, object, generation)
}

func bareCreate(ctx context.Context, object *storage.ObjectHandle) (generation int64, err error) {
	w := object.If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
	w.ChunkSize = 0 // a one-shot upload: no buffer of 16 MiB
	if err := w.Close(); err != nil {
		return 0, err
	}
	return w.Attrs().Generation, nil
}

func bareDelete(ctx context.Context, object *storage.ObjectHandle, generation int64) error {
	return object.If(storage.Conditions{GenerationMatch: generation}).Delete(ctx)
}

// A side is one of two things that are compared.
type side func() error

// A cost is what a side took, for each time it was done.
type cost struct{ wall, cpu, bytes, allocs, requests float64 }

// compare does both sides by turns, in batches, so that what else the machine
// is doing meets both alike, and returns the median cost of each.
func compare(b *testing.B, requests *atomic.Int64, batch int, floor, ours side) (cost, cost) {
	b.Helper()
	least := sized(7, 1) // slow ones would be done once, for a second of b.N
	var samples [2][]cost
	for len(samples[0]) < least || len(samples[0])*batch < b.N {
		for i, s := range []side{floor, ours} {
			samples[i] = append(samples[i], sample(b, requests, batch, s))
		}
	}
	return medianCost(samples[0]), medianCost(samples[1])
}

func sample(b *testing.B, requests *atomic.Int64, batch int, s side) cost {
	b.Helper()
	var before, after runtime.MemStats
	sent := requests.Load()
	runtime.ReadMemStats(&before)
	cpu, wall := cpuTime(b), time.Now()
	for range batch {
		if err := s(); err != nil {
			b.Fatal(err)
		}
	}
	took, used := time.Since(wall), cpuTime(b)-cpu
	runtime.ReadMemStats(&after)
	n := float64(batch)
	return cost{
		float64(took) / n, float64(used) / n,
		float64(after.TotalAlloc-before.TotalAlloc) / n, float64(after.Mallocs-before.Mallocs) / n,
		float64(requests.Load()-sent) / n,
	}
}

// medianCost has the median of each part by itself.
func medianCost(samples []cost) cost {
	median := func(of func(cost) float64) float64 {
		var values []float64
		for _, s := range samples {
			values = append(values, of(s))
		}
		return quantile(values, 0.5)
	}
	return cost{
		median(func(c cost) float64 { return c.wall }), median(func(c cost) float64 { return c.cpu }),
		median(func(c cost) float64 { return c.bytes }), median(func(c cost) float64 { return c.allocs }),
		median(func(c cost) float64 { return c.requests }),
	}
}

// report gives a benchmark's figures as ratios to the floor.
func report(b *testing.B, floor, ours cost) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.requests, "requests/op")
	b.ReportMetric(ours.wall/floor.wall, "time/floor")
	b.ReportMetric(ours.cpu/floor.cpu, "cpu/floor")
	b.ReportMetric(ours.bytes/floor.bytes, "bytes/floor")
	b.ReportMetric(ours.allocs/floor.allocs, "allocs/floor")
	b.ReportMetric(floor.cpu/1e3, "floor-cpu-us")
	b.ReportMetric(floor.bytes, "floor-B")
	b.ReportMetric(floor.allocs, "floor-allocs")
}
