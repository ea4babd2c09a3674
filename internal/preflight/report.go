// Package preflight looks at a bucket before a lock in it is relied on: with the
// permissions that its caller has, and on probe objects beside the lock. The
// lock object itself is read and never touched, because it may be held.
package preflight

import (
	"fmt"
	"time"

	"github.com/gcslock/gcslock"
)

// A State is what a finding means for the lock.
type State string

// The states.
const (
	OK      State = "ok"
	Warn    State = "warn"    // the lock works, but costs or shows what nobody expects
	Fail    State = "fail"    // the lock can't be relied on
	Unknown State = "unknown" // could not be looked at
)

// A Finding is one thing that was looked at. Its texts are safe to print.
type Finding struct {
	Name  string   `json:"name"`
	State State    `json:"state"`
	Seen  string   `json:"seen"`
	Why   string   `json:"why,omitempty"` // why it matters; empty where it does not
	Fix   []string `json:"fix,omitempty"` // command lines, see Member
}

// Member stands in fixes for the identity that gcslock runs as, which the
// requests do not tell.
const Member = "MEMBER"

// A Report is all that was found.
type Report struct {
	// Holder is who holds the lock; nil where nobody does or where that could
	// not be read.
	Holder   *gcslock.Info
	Readable bool // whether Holder was read
	Findings []Finding
	// Latencies are those of the operations that were timed.
	Latencies []Latency
	// TTL is the shortest sensible one; 0 where it could not be measured.
	TTL time.Duration
	// Left are the probe objects that could not be removed.
	Left []string
}

// A Latency is how long an operation took, in the attempts that were answered.
type Latency struct {
	Operation       string // create, read, update or delete
	Samples, Failed int
	Median, Worst   time.Duration
}

func (r *Report) add(findings ...Finding) { r.Findings = append(r.Findings, findings...) }

func (r *Report) count(state State) int {
	n := 0
	for _, f := range r.Findings {
		if f.State == state {
			n++
		}
	}
	return n
}

// Fit tells whether the lock can be relied on.
func (r *Report) Fit() bool { return r.count(Fail) == 0 }

// Verdict is the report in one sentence about the lock at this URL.
func (r *Report) Verdict(url string) string {
	if n := r.count(Fail); n > 0 {
		return fmt.Sprintf("%s can't be relied on before %s mended", url,
			number(n, "the finding marked FAIL is", "the %d findings marked FAIL are"))
	}
	text := url + " can be relied on"
	if r.TTL > 0 {
		text += fmt.Sprintf(", with a ttl of %v or more", r.TTL)
	}
	if n := r.count(Warn); n > 0 {
		text += "; see " + number(n, "the warning", "the %d warnings")
	}
	if n := r.count(Unknown); n > 0 {
		text += "; " + number(n, "one thing", "%d things") + " could not be looked at"
	}
	return text
}

func number(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}
