package gcslock

import (
	"testing"
	"time"
)

func lowest(time.Duration) time.Duration    { return 0 }
func highest(n time.Duration) time.Duration { return n - 1 }

// TestPace: exactly what the rule says, at both ends of chance.
func TestPace(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		before    int           // holders that were seen first, one after the other
		turns     time.Duration // for how long each of the others was
		watched   time.Duration // for how long the last one has been
		low, high time.Duration
	}{
		"a first holder, new":           {1, 0, 0, 100 * ms, 300 * ms},
		"a second holder, new":          {2, 0, 0, 100 * ms, 225 * ms},
		"a third holder, new":           {3, 0, 0, 100 * ms, 150 * ms},
		"the eighth, new":               {8, 0, 0, 100 * ms, 150 * ms},
		"the sixteenth, new":            {16, 0, 0, 100 * ms, 300 * ms},
		"a first holder, after 2 s":     {1, 0, 2 * time.Second, 250 * ms, 750 * ms},
		"a second holder, after 2 s":    {2, 0, 2 * time.Second, 250 * ms, 750 * ms},
		"nearly the longest":            {1, 0, 3 * time.Second, 375 * ms, time.Second},
		"a first holder, after 4 s":     {1, 0, 4 * time.Second, time.Second, time.Second},
		"a first holder, after hours":   {1, 0, 4 * time.Hour, time.Second, time.Second},
		"the hundredth, after 4 s":      {100, 0, 4 * time.Second, time.Second, time.Second},
		"new, after one of 2 s":         {2, 2 * time.Second, 0, 250 * ms, 750 * ms},
		"new, after two of 2 s":         {3, 2 * time.Second, 0, 250 * ms, 750 * ms},
		"longer there than the last":    {3, time.Second, 2 * time.Second, 250 * ms, 750 * ms},
		"new, after one that had hours": {2, time.Hour, 0, time.Second, time.Second},
	} {
		for _, end := range []struct {
			random source
			want   time.Duration
		}{{lowest, tt.low}, {highest, tt.high}} {
			p := pace{random: end.random, shortest: 100 * ms, longest: time.Second}
			now := reading{mono: time.Hour}
			for holder := range tt.before {
				p.next(int64(holder+1), now)
				now.mono += tt.turns
			}
			now.mono += tt.watched - tt.turns
			if got := p.next(int64(tt.before), now); got != end.want {
				t.Errorf("%s: a pause of %v, want %v", name, got, end.want)
			}
		}
	}
}
