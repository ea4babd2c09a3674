package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

// journalOf has sections from triples of worker, begin and end, in milliseconds.
func journalOf(triples ...[3]int64) []entry {
	var sections []entry
	for _, t := range triples {
		sections = append(sections, entry{Worker: int(t[0]), Begin: t[1] * 1e6, End: t[2] * 1e6})
	}
	return sections
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) < 1e-9) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // not in order
	}
	near(t, "median of 1 to 100", quantile(hundred, 0.5), 50)
	near(t, "95th percentile of 1 to 100", quantile(hundred, 0.95), 95)
	near(t, "largest of 1 to 100", quantile(hundred, 1), 100)
	near(t, "smallest of 1 to 100", quantile(hundred, 0), 1)
	near(t, "first in place", hundred[0], 100)
	near(t, "median of three", quantile([]float64{7, 1, 3}, 0.5), 3)
	near(t, "95th percentile of one", quantile([]float64{7}, 0.95), 7)
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("median of nothing: %v", got)
	}
}

func TestGaps(t *testing.T) {
	sections := journalOf([3]int64{1, 180, 230}, [3]int64{0, 100, 150}, [3]int64{0, 330, 380})
	if err := inOrder(sections); err != nil {
		t.Fatal(err)
	}
	got := gaps(sections)
	if len(got) != 2 {
		t.Fatalf("gaps %v, want two", got)
	}
	near(t, "first gap", got[0], 30)
	near(t, "second gap", got[1], 100)
	if got := gaps(sections[:1]); len(got) != 0 {
		t.Errorf("one section has gaps: %v", got)
	}
}

func TestOverlap(t *testing.T) {
	err := inOrder(journalOf([3]int64{1, 149, 200}, [3]int64{0, 100, 150}))
	if err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("sections that overlap: %v", err)
	}
	if err := inOrder(journalOf([3]int64{1, 150, 200}, [3]int64{0, 100, 150})); err != nil {
		t.Errorf("sections that touch: %v", err)
	}
}

func TestFairness(t *testing.T) {
	for _, tt := range []struct {
		turns        []int
		fewest, most int
		jain         float64
	}{
		{[]int{5, 5, 5, 5}, 5, 5, 1},
		{[]int{12, 0, 0, 0}, 0, 12, 0.25},
		{[]int{3, 1}, 1, 3, 0.8},
	} {
		var sections []entry
		for worker, n := range tt.turns {
			for range n {
				sections = append(sections, entry{Worker: worker})
			}
		}
		fewest, most, jain := fairness(sections, len(tt.turns))
		if fewest != tt.fewest || most != tt.most {
			t.Errorf("%v: from %d to %d turns, want %d to %d", tt.turns, fewest, most, tt.fewest, tt.most)
		}
		near(t, "Jain's index", jain, tt.jain)
	}
}

func TestOfAllowed(t *testing.T) {
	// A begin every 2 s is all that one change a second allows.
	near(t, "all", ofAllowed(journalOf([3]int64{0, 0, 50}, [3]int64{1, 2000, 2050}, [3]int64{0, 4000, 4050}), time.Second), 1)
	near(t, "half", ofAllowed(journalOf([3]int64{0, 0, 50}, [3]int64{1, 4000, 4050}), time.Second), 0.5)
}

func TestMedianCost(t *testing.T) {
	// Each part has its own: the sample with the least wall time has the most CPU.
	got := medianCost([]cost{{1, 30, 100, 7, 2}, {2, 20, 300, 7, 2}, {9, 10, 200, 8, 3}})
	if want := (cost{2, 20, 200, 7, 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCounts(t *testing.T) {
	a, b := counts{10, 20, 30, 40}, counts{1, 2, 3, 4}
	if got := a.plus(b); got != (counts{11, 22, 33, 44}) || got.minus(b) != a || got.total() != 110 {
		t.Errorf("sum %+v, difference %+v, total %d", got, got.minus(b), got.total())
	}
}

func TestJudge(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(seconds ...float64) (times []time.Time) {
		for _, s := range seconds {
			times = append(times, began.Add(time.Duration(s*float64(time.Second))))
		}
		return times
	}
	w := writes{began: began, times: map[string][]time.Time{
		"a": at(0.5, 2.4, 4.5), // early by 0.1 s, late by 0.1 s
		"b": at(0.6, 2.6, 5.6), // in time, late by 1 s
		"c": at(0.7),
	}}
	late, peak := w.judge(2*time.Second, 14*time.Second)
	if late != time.Second {
		t.Errorf("99th percentile of the lateness %v, want that of the latest of four, 1s", late)
	}
	near(t, "peak over mean", peak, 6) // three in the first second, seven in 14 s
	if _, peak := (&writes{}).judge(time.Second, time.Second); !math.IsNaN(peak) {
		t.Errorf("peak of no writes: %v", peak)
	}
}
