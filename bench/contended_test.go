package bench

import (
	"fmt"
	"testing"
	"time"
)

const sectionLength = 50 * time.Millisecond

// BenchmarkContended is a contest of workers with sections of 50 ms, 5 for each
// (3 for each of 64). Gaps are measured from the end of a section to the begin of
// the next, by the machine's one clock; beside them is the gap's floor, a bare
// delete followed by a bare create. Where each has its quota, those who have done
// theirs leave; where all are free to go again, until the sections are used up,
// it tells how many turns each had.
func BenchmarkContended(b *testing.B) {
	for _, c := range contests() {
		b.Run(c.String(), c.benchmark)
	}
}

func contests() (all []contest) {
	full := []contest{{workers: 2, each: 5}, {workers: 8, each: 5},
		{workers: 8, each: 5, server: serverSetting{Delay: 20 * time.Millisecond}}, {workers: 64, each: 3}}
	for _, c := range sized(full, []contest{{workers: 2, each: 1}}) {
		c.section = sectionLength
		for _, c.processes = range []bool{false, true} {
			for _, c.free = range []bool{false, true} {
				all = append(all, c)
			}
		}
	}
	return all
}

func (c contest) benchmark(b *testing.B) {
	o := c.run(b)
	o.reportGaps(b)
	o.requests.report(b, len(o.sections), "section")
	if c.free { // else it is 1 by design
		o.reportFairness(b, c.workers)
	}
	if c.server.Rate > 0 {
		b.ReportMetric(ofAllowed(o.sections, c.server.Rate), "of-allowed")
	}
}

// BenchmarkRateLimited is a contest of 8 workers, where the object changes at most once
// a second and the server refuses what comes earlier. It tells how many sections there
// were of those that the limit allows, one in two seconds.
func BenchmarkRateLimited(b *testing.B) {
	equal := contest{workers: sized(8, 2), each: sized(3, 1), section: sectionLength,
		server: serverSetting{Rate: sized(time.Second, 100*time.Millisecond)}}
	many, free := equal, equal
	many.processes = true
	free.processes, free.free, free.each = true, true, sized(5, 1)
	for _, c := range sized([]contest{equal, many, free}, []contest{many}) {
		b.Run(c.String(), c.benchmark)
	}
}

// BenchmarkHandoff is a contest of 1,000 goroutines of one process, with one section
// of a millisecond each, that pass the lock on among themselves so many times in a
// row before it is deleted. 0 is without it, and what the others are measured by.
func BenchmarkHandoff(b *testing.B) {
	for _, handoffs := range sized([]int{0, 10, 100}, []int{10}) {
		b.Run(fmt.Sprintf("handoffs=%d", handoffs), func(b *testing.B) {
			c := contest{workers: sized(1000, 20), each: 1, section: time.Millisecond, handoffs: handoffs}
			o := c.run(b)
			o.reportGaps(b)
			o.requests.report(b, len(o.sections), "section")
		})
	}
}
