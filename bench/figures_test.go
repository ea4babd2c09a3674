package bench

import (
	"math"
	"slices"
	"testing"
	"time"
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile is the smallest value that at least q of all are not above.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// gaps are how long nobody held the lock although somebody wanted it, in
// milliseconds: from the end of each section, just before its release, to the
// begin of the next, just after its acquisition.
func gaps(sections []entry) []float64 {
	var gaps []float64
	for i := 1; i < len(sections); i++ {
		gaps = append(gaps, milliseconds(time.Duration(sections[i].Begin-sections[i-1].End)))
	}
	return gaps
}

// fairness is how the sections were shared out. Jain's index is 1 where all have
// the same, and 1/n where one of n has all.
func fairness(sections []entry, workers int) (fewest, most int, jain float64) {
	turns := make([]int, workers)
	for _, e := range sections {
		turns[e.Worker]++
	}
	var sum, squares float64
	for _, n := range turns {
		sum += float64(n)
		squares += float64(n * n)
	}
	return slices.Min(turns), slices.Max(turns), sum * sum / (float64(workers) * squares)
}

// ofAllowed is the share of the sections that a limit of one change in rate allows.
// A section is two changes, its create and its delete. It counts from the first
// section's begin to the last one's.
func ofAllowed(sections []entry, rate time.Duration) float64 {
	took := sections[len(sections)-1].Begin - sections[0].Begin
	return float64(len(sections)-1) * 2 * float64(rate) / float64(took)
}

func (o outcome) reportGaps(b *testing.B) {
	values := gaps(o.sections)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(values, 0.5), "gap-median-ms")
	b.ReportMetric(quantile(values, 0.95), "gap-p95-ms")
	b.ReportMetric(slices.Max(values), "gap-worst-ms")
	if o.floor > 0 {
		b.ReportMetric(o.floor, "gap-floor-ms")
	}
}

func (o outcome) reportFairness(b *testing.B, workers int) {
	fewest, most, jain := fairness(o.sections, workers)
	b.ReportMetric(float64(fewest), "fewest-turns")
	b.ReportMetric(float64(most), "most-turns")
	b.ReportMetric(jain, "jain")
}
