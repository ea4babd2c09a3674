package main

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// BenchmarkSchedule reports schedules a second on one core, and how many times
// as long they take as what none can do without: that as many requests as they
// made set out and come back, each a wait of a goroutine in a bubble.
func BenchmarkSchedule(b *testing.B) {
	var sum totals
	var spent, floor time.Duration
	inTest(b, func(t *testing.T) {
		began := time.Now()
		for seed := range uint64(b.N) {
			sum.add(simulate(t, 1+seed, nil).totals)
		}
		spent = time.Since(began)
		began = time.Now()
		waits(t, b.N, 2*sum.requests)
		floor = time.Since(began)
	})
	b.ReportMetric(float64(b.N)/spent.Seconds(), "schedules/s")
	b.ReportMetric(float64(sum.requests)/float64(b.N), "requests/schedule")
	b.ReportMetric(float64(spent)/float64(floor), "times-floor")
}

// inTest runs f as a test, because bubbles are not to be had in a benchmark.
func inTest(b *testing.B, f func(*testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: f}}) {
		b.Fatal("the schedules failed")
	}
}

// waits has four goroutines wait in as many bubbles as there are schedules.
func waits(t *testing.T, bubbles, total int) {
	const clients = 4
	for range bubbles {
		synctest.Test(t, func(t *testing.T) {
			var running sync.WaitGroup
			for i := range clients {
				running.Go(func() {
					for range total / bubbles / clients {
						time.Sleep(time.Second + time.Duration(i))
					}
				})
			}
			running.Wait()
		})
	}
}
