package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// A contest is a number of workers that want the same lock.
type contest struct {
	workers   int
	each      int           // sections of each worker, or their mean if free
	section   time.Duration // length of one
	processes bool          // each worker in a process of its own; else all in one, through one Lock
	free      bool          // whoever comes first may go again; else each has the same number of sections
	handoffs  int
	server    serverSetting
}

func (c contest) String() string {
	where, quota := "one", "equal"
	if c.processes {
		where = "many"
	}
	if c.free {
		quota = "free"
	}
	return fmt.Sprintf("workers=%d/delay=%v/processes=%s/quota=%s", c.workers, c.server.Delay, where, quota)
}

// An outcome is what came of a contest.
type outcome struct {
	sections []entry // in order
	requests counts  // of all workers
	floor    float64 // the floor of a gap before and after the contest, in milliseconds
}

// run holds the contest once, whatever b.N is.
func (c contest) run(b *testing.B) outcome {
	b.Helper()
	url := startServer(b, c.server)
	var bare []float64
	measure := c.server.Rate == 0 // else the limit is the floor
	if measure {
		bare = bareGaps(b, url)
	}
	o := c.collect(b, c.start(b, url))
	if measure {
		o.floor = quantile(append(bare, bareGaps(b, url)...), 0.5)
	}
	return o
}

// collect reads the workers' journals until all have ended, and fails unless all
// went well.
func (c contest) collect(b *testing.B, workers []*process) (o outcome) {
	b.Helper()
	ended := 0
	for e := range journals(b, workers) {
		if e.Requests != nil {
			ended++
			o.requests = o.requests.plus(*e.Requests)
			continue
		}
		if o.sections = append(o.sections, e); c.free && len(o.sections) == c.workers*c.each {
			for _, p := range workers {
				p.stdin.Close()
			}
		}
	}
	for _, p := range workers {
		p.end(b)
	}
	if err := inOrder(o.sections); err != nil {
		b.Error(err)
	}
	if b.Failed() || ended < len(workers) || len(o.sections) < c.workers*c.each {
		b.Fatalf("%d of %d processes ended as they should, after %d sections", ended, len(workers), len(o.sections))
	}
	return o
}

// start starts the workers, and has them begin when all are ready.
func (c contest) start(b *testing.B, url string) []*process {
	b.Helper()
	setting := workerSetting{URL: url, Workers: c.workers, Section: c.section, Handoffs: c.handoffs}
	if !c.free {
		setting.Quota = c.each
	}
	count := 1
	if c.processes {
		count, setting.Workers = c.workers, 1
	}
	var workers []*process
	for i := range count {
		setting.First = i
		workers = append(workers, startProcess(b, beWorker, setting))
	}
	for _, p := range workers {
		p.line(b)
	}
	for _, p := range workers {
		if _, err := p.stdin.Write([]byte("\n")); err != nil {
			b.Fatal(err)
		}
	}
	return workers
}

// journals gives the processes' entries as they come, until all have ended.
func journals(b *testing.B, workers []*process) <-chan entry {
	entries := make(chan entry)
	var reading sync.WaitGroup
	for _, p := range workers {
		reading.Go(func() {
			for p.stdout.Scan() {
				var e entry
				if err := json.Unmarshal(p.stdout.Bytes(), &e); err != nil {
					b.Errorf("journal: %v", err)
				}
				entries <- e
			}
		})
	}
	go func() {
		reading.Wait()
		close(entries)
	}()
	return entries
}

// bareGaps are the times of a bare delete followed by a bare create, in
// milliseconds: what no lock that is an object can do faster from the end of a
// section to the begin of the next.
func bareGaps(b *testing.B, url string) []float64 {
	b.Helper()
	s, err := newSite(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	object := s.bucket.Object("floor")
	generation, err := bareCreate(b.Context(), object)
	if err != nil {
		b.Fatal(err)
	}
	var gaps []float64
	for range sized(20, 2) {
		began := time.Now()
		if err := bareDelete(b.Context(), object, generation); err != nil {
			b.Fatal(err)
		}
		if generation, err = bareCreate(b.Context(), object); err != nil {
			b.Fatal(err)
		}
		gaps = append(gaps, milliseconds(time.Since(began)))
	}
	if err := bareDelete(b.Context(), object, generation); err != nil {
		b.Fatal(err)
	}
	return gaps
}

// inOrder sorts the sections, and tells if two overlap.
func inOrder(sections []entry) error {
	slices.SortFunc(sections, func(x, y entry) int { return int(x.Begin - y.Begin) })
	for i := 1; i < len(sections); i++ {
		if sections[i].Begin < sections[i-1].End {
			return fmt.Errorf("sections overlap: %+v and %+v", sections[i-1], sections[i])
		}
	}
	return nil
}
