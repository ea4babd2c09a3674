package preflight

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

// samples is how often each operation is timed.
const samples = 10

// An operation is one of the four that the protocol is made of.
type operation struct {
	name string
	do   func(ctx context.Context, probe string) (sample, error)
}

// latencies times each operation on ten objects: on one object only, the limit of
// one change a second would be what is timed. All objects go through an operation
// before the next one, so that each has that time between its changes.
func (r *run) latencies(ctx context.Context) {
	create := func(ctx context.Context, name string) (sample, error) {
		s, _, err := r.probes.create(ctx, name)
		return s, err
	}
	names := make([]string, samples)
	for i := range names {
		names[i] = r.probes.next()
	}
	for _, op := range []operation{
		{"create", create}, {"read", r.probes.read}, {"update", r.probes.update}, {"delete", r.probes.remove},
	} {
		if !r.latency(ctx, op, names) {
			return
		}
	}
	worst := func(i int) time.Duration { return r.Latencies[i].Worst }
	r.smallestTTL(max(worst(0), worst(2)), worst(1))
}

// latency times one operation. It tells whether that was possible.
func (r *run) latency(ctx context.Context, op operation, names []string) bool {
	l := Latency{Operation: op.name, Samples: len(names)}
	var took []time.Duration
	var last error
	for _, name := range names {
		s, err := op.do(ctx, name)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			r.add(Finding{
				Name: op.name + " latency", State: Fail, Seen: err.Error(),
				Why: "a request failed that had worked before",
			})
			return false
		}
		took = append(took, s.took)
		l.Failed += s.failed
		if s.last != nil {
			last = s.last
		}
	}
	slices.Sort(took)
	l.Median, l.Worst = median(took), took[len(took)-1]
	r.Latencies = append(r.Latencies, l)
	r.add(l.finding(last))
	return true
}

func (l Latency) finding(last error) Finding {
	f := Finding{
		Name: l.Operation + " latency", State: OK,
		Seen: fmt.Sprintf("median %v, worst %v of %d", rounded(l.Median), rounded(l.Worst), l.Samples),
	}
	if l.Failed > 0 {
		f.State = Warn
		f.Seen += fmt.Sprintf("; %d more failed, the last one with %s", l.Failed, inside.Summary(last))
		f.Why = "a lock lives through failures, but a lease ends when they last for nine tenths of its ttl"
	}
	return f
}

func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func rounded(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

const (
	leastTTL = 3 * time.Second // gcslock's own limit
	// reserve is for what ten samples do not show.
	reserve = 3
)

// ttlFor is the shortest ttl with which a lease outlives a whole refresh that
// gets no answer. A refresh begins a third of the ttl after the last one and
// tries for a third of it; the next one begins at once, and its write, with the
// read that an unanswered write makes necessary, has to be done within the
// validity of nine tenths: in 9/10 - 2/3 = 7/30 of the ttl.
func ttlFor(worstWrite, worstRead time.Duration) time.Duration {
	ttl := reserve * (worstWrite + worstRead) * 30 / 7
	return max(leastTTL, (ttl + time.Second - 1).Truncate(time.Second))
}

func (r *run) smallestTTL(worstWrite, worstRead time.Duration) {
	r.TTL = ttlFor(worstWrite, worstRead)
	f := Finding{
		Name: "ttl", State: OK,
		Seen: fmt.Sprintf("%v or more; the default of %v is long enough", r.TTL, gcslock.DefaultTTL),
	}
	if r.TTL > gcslock.DefaultTTL {
		f.State = Warn
		f.Seen = fmt.Sprintf("%v or more; the default of %v is too short", r.TTL, gcslock.DefaultTTL)
		f.Why = "a lease would be lost when a few slow requests come together"
		f.Fix = []string{fmt.Sprintf("gcslock run --ttl %v %s -- COMMAND", r.TTL, shellWord(inside.URL(r.Bucket.BucketName(), r.Object)))}
	}
	r.add(f)
}
