package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// A contest is a number of workers that want the same lock.
type contest struct {
	workers   int
	processes bool // each in a process of its own; else all in one, through one Lock
	free      bool // whoever comes first may go again; else each has the same number of sections
	rate      time.Duration
}

const (
	sectionLength     = 50 * time.Millisecond
	sectionsPerWorker = 5
)

func (c contest) String() string {
	where, quota := "one", "equal"
	if c.processes {
		where = "many"
	}
	if c.free {
		quota = "free"
	}
	return fmt.Sprintf("workers=%d/processes=%s/quota=%s", c.workers, where, quota)
}

// BenchmarkContended is a contest of workers with short sections.
func BenchmarkContended(b *testing.B) {
	for _, workers := range []int{2, 8, 64} {
		for _, processes := range []bool{false, true} {
			for _, free := range []bool{false, true} {
				c := contest{workers: workers, processes: processes, free: free}
				b.Run(c.String(), func(b *testing.B) {
					sections, requests := c.run(b)
					reportGaps(b, sections)
					reportFairness(b, sections, workers)
					b.ReportMetric(float64(requests)/float64(len(sections)), "requests/section")
				})
			}
		}
	}
}

// BenchmarkRateLimited is a contest where the object changes at most once a second.
func BenchmarkRateLimited(b *testing.B) {
	for _, processes := range []bool{false, true} {
		c := contest{workers: 8, processes: processes, rate: time.Second}
		b.Run(c.String(), func(b *testing.B) {
			sections, requests := c.run(b)
			took := time.Duration(sections[len(sections)-1].Begin - sections[0].Begin)
			// A section is two changes: its create and its delete.
			allowed := float64(took) / float64(2*c.rate)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(sections)-1)/allowed, "of-allowed")
			b.ReportMetric(float64(requests)/float64(len(sections)), "requests/section")
		})
	}
}

// run holds the contest once, whatever b.N is, and returns its sections in order
// and the number of requests that all workers made.
func (c contest) run(b *testing.B) (sections []entry, requests int64) {
	b.Helper()
	url := startServer(b, serverSetting{Rate: c.rate})
	setting := workerSetting{URL: url, Workers: c.workers, Section: sectionLength}
	if !c.free {
		setting.Quota = sectionsPerWorker
	}
	count := 1
	if c.processes {
		count, setting.Workers = c.workers, 1
	}
	var workers []*process
	for i := range count {
		setting.First = i
		p := startProcess(b, beWorker, setting)
		p.line(b)
		workers = append(workers, p)
	}
	entries := make(chan entry)
	for _, p := range workers {
		if _, err := p.stdin.Write([]byte("\n")); err != nil {
			b.Fatal(err)
		}
		go func() {
			for p.stdout.Scan() {
				var e entry
				if err := json.Unmarshal(p.stdout.Bytes(), &e); err != nil {
					b.Error(err)
				}
				entries <- e
			}
		}()
	}
	for ended := 0; ended < len(workers); {
		e := <-entries
		if e.Requests > 0 {
			ended++
			requests += e.Requests
			continue
		}
		if sections = append(sections, e); c.free && len(sections) == c.workers*sectionsPerWorker {
			for _, p := range workers {
				p.stdin.Close()
			}
		}
	}
	for _, p := range workers {
		p.end(b)
	}
	slices.SortFunc(sections, func(x, y entry) int { return int(x.Begin - y.Begin) })
	for i := 1; i < len(sections); i++ {
		if sections[i].Begin < sections[i-1].End {
			b.Fatalf("sections overlap: %+v and %+v", sections[i-1], sections[i])
		}
	}
	return sections, requests
}

// reportGaps tells how long nobody held the lock although somebody wanted it.
func reportGaps(b *testing.B, sections []entry) {
	var gaps []float64
	for i := 1; i < len(sections); i++ {
		gaps = append(gaps, float64(sections[i].Begin-sections[i-1].End)/float64(time.Millisecond))
	}
	slices.Sort(gaps)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(gaps[len(gaps)/2], "gap-median-ms")
	b.ReportMetric(gaps[len(gaps)*95/100], "gap-p95-ms")
	b.ReportMetric(gaps[len(gaps)-1], "gap-worst-ms")
}

// reportFairness tells how the sections were shared out. Jain's index is 1 where
// all have the same, and 1/n where one of n has all.
func reportFairness(b *testing.B, sections []entry, workers int) {
	turns := make([]int, workers)
	for _, e := range sections {
		turns[e.Worker]++
	}
	var sum, squares float64
	for _, n := range turns {
		sum += float64(n)
		squares += float64(n * n)
	}
	b.ReportMetric(float64(slices.Min(turns)), "fewest-turns")
	b.ReportMetric(float64(slices.Max(turns)), "most-turns")
	b.ReportMetric(sum*sum/(float64(workers)*squares), "jain")
}
