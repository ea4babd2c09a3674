package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gcslock/gcslock"
)

// BenchmarkMany is a process that holds many leases for a while.
func BenchmarkMany(b *testing.B) {
	for _, leases := range sized([]int{1, 1000, 10000}, []int{1}) {
		b.Run(fmt.Sprintf("leases=%d", leases), func(b *testing.B) {
			ttl, length := sized(gcslock.DefaultTTL, 3*time.Second), sized(90*time.Second, 3*time.Second)
			s := benchSite(b, serverSetting{})
			// What the client has of its own, connections first of all.
			warmUp(b, s)
			before := snapshot()
			held := acquireAll(b, s, leases, ttl)
			acquired := snapshot()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(acquired.goroutines-before.goroutines)/float64(leases), "goroutines/lease")
			b.ReportMetric((acquired.memory-before.memory)/float64(leases), "B/lease")

			s.writes.reset()
			cpu, sent := cpuTime(b), s.requests.Load()
			time.Sleep(length)
			refreshes := s.requests.Load() - sent
			b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(refreshes), "cpu-us/refresh")
			idle := snapshot()
			b.ReportMetric((idle.memory-before.memory)/float64(leases), "B/lease-later")
			late, peak := s.writes.judge(ttl/3, length)
			b.ReportMetric(late.Seconds()/ttl.Seconds(), "p99-late/ttl")
			b.ReportMetric(peak, "peak/mean")
			releaseAll(b, held)
		})
	}
}

type memory struct {
	goroutines int
	memory     float64 // heap and stacks in use, in bytes
}

func snapshot() memory {
	for range 3 {
		runtime.GC() // it takes more than one to shrink stacks and empty pools
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{runtime.NumGoroutine(), float64(m.HeapAlloc + m.StackInuse)}
}

// inParallel calls f with 0 to below n, at most 32 at a time.
func inParallel(n int, f func(i int)) {
	var running sync.WaitGroup
	turns := make(chan struct{}, 32)
	for i := range n {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			f(i)
		})
	}
	running.Wait()
}

func acquireAll(b *testing.B, s site, n int, ttl time.Duration) []*gcslock.Lease {
	b.Helper()
	held := make([]*gcslock.Lease, n)
	inParallel(n, func(i int) {
		lock, err := gcslock.New(s.client.Bucket(otherBucket(i)), objectName(i), gcslock.WithTTL(ttl))
		if err != nil {
			b.Error(err)
			return
		}
		if held[i], err = lock.Acquire(context.Background()); err != nil {
			b.Error(err)
		}
	})
	if b.Failed() {
		b.FailNow()
	}
	return held
}

func releaseAll(b *testing.B, held []*gcslock.Lease) {
	b.Helper()
	inParallel(len(held), func(i int) {
		if err := held[i].Release(context.Background()); err != nil {
			b.Error(err)
		}
	})
}

func warmUp(b *testing.B, s site) { releaseAll(b, acquireAll(b, s, 100, gcslock.DefaultTTL)) }

// writes are the times of each object's requests.
type writes struct {
	mu    sync.Mutex // guards all below
	began time.Time
	times map[string][]time.Time
}

func (w *writes) note(object string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.times != nil {
		w.times[object] = append(w.times[object], at)
	}
}

func (w *writes) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.times = time.Now(), map[string][]time.Time{}
}

// judge gives the 99th percentile of what the pauses between two refreshes of an
// object were longer than the interval (they are up to a tenth shorter on purpose),
// and the most writes in any second over the mean.
func (w *writes) judge(interval, length time.Duration) (late time.Duration, peak float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lateness []time.Duration
	seconds := make([]int, int(length/time.Second)+1)
	total := 0
	for _, times := range w.times {
		for i, t := range times {
			total++
			if at := int(t.Sub(w.began) / time.Second); at < len(seconds) {
				seconds[at]++
			}
			if i > 0 {
				lateness = append(lateness, max(0, t.Sub(times[i-1])-interval))
			}
		}
	}
	slices.Sort(lateness)
	mean := float64(total) / length.Seconds()
	if len(lateness) == 0 {
		return 0, math.NaN()
	}
	return lateness[len(lateness)*99/100], float64(slices.Max(seconds)) / mean
}
