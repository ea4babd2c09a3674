package otelgcslock

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// TestMetrics: every metric, with its attributes and values.
func TestMetrics(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.all()
		var got []string
		for _, m := range w.collect() {
			for _, s := range seriesOf(m) {
				got = append(got, s.String())
			}
		}
		want := []string{
			"gcslock.contentions{} 1",
			"gcslock.hold.duration{error.type=403 gcslock.hold.outcome=released} 1 in 0s",
			"gcslock.hold.duration{error.type=lock_abandoned gcslock.hold.outcome=lost} 2 in 5.05s",
			"gcslock.hold.duration{gcslock.hold.outcome=released} 1 in 12s",
			"gcslock.lease.active{} 1",
			"gcslock.losses{gcslock.loss.reason=deleted} 1",
			"gcslock.losses{gcslock.loss.reason=max_hold} 1",
			"gcslock.refresh.duration{error.type=503} 1 in 0.05s",
			"gcslock.refresh.duration{} 1 in 2s",
			// create; create; create get delete create; create; create get delete create
			// of the leases, and create get of the one that was kept out.
			"gcslock.requests{gcslock.operation.name=acquire} 13",
			"gcslock.requests{gcslock.operation.name=refresh} 2",
			"gcslock.requests{gcslock.operation.name=release} 3",
			"gcslock.takeovers{gcslock.takeover.reason=expired} 1",
			"gcslock.takeovers{gcslock.takeover.reason=reclaimed} 1",
			"gcslock.wait.duration{error.type=locked} 1 in 0s",
			"gcslock.wait.duration{} 5 in 0s",
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("measured\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	})
}

// TestLockNames: the bucket always, the object where it was asked for.
func TestLockNames(t *testing.T) {
	for name, opts := range map[string][]Option{"": nil, "nightly/lock": {WithObjectNames()}} {
		inWorld(t, func(t *testing.T, w *world) {
			w.all()
			metrics := w.collect()
			if len(metrics) == 0 {
				t.Fatal("nothing is measured")
			}
			for _, m := range metrics {
				for _, set := range attributeSets(m) {
					bucket, _ := set.Value(bucketKey)
					object, has := set.Value(objectKey)
					if bucket.AsString() != "jobs" || object.AsString() != name || has != (name != "") {
						t.Errorf("%s has attributes %v", m.Name, set.ToSlice())
					}
				}
			}
		}, opts...)
	}
}

func attributeSets(m metricdata.Metrics) []attribute.Set {
	var sets []attribute.Set
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	}
	return sets
}

// TestBounds: a wait of a day is told from one of an hour, and a refresh of 5 ms
// from one of 10 ms; all without a view.
func TestBounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.all()
		want := map[string][]float64{
			"gcslock.wait.duration": longBounds, "gcslock.hold.duration": longBounds, "gcslock.refresh.duration": shortBounds,
		}
		for _, m := range w.collect() {
			data, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			if !slices.Equal(data.DataPoints[0].Bounds, want[m.Name]) {
				t.Errorf("%s has bounds %v", m.Name, data.DataPoints[0].Bounds)
			}
			delete(want, m.Name)
		}
		if len(want) > 0 {
			t.Errorf("no histogram %v", want)
		}
	})
}

// TestDocsListTheMetrics: docs/observability.md has them all, as they are.
func TestDocsListTheMetrics(t *testing.T) {
	page, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(t *testing.T, w *world) {
		w.all()
		var rows []string
		for _, m := range w.collect() {
			keys := map[string]bool{}
			var instrument string
			for _, s := range seriesOf(m) {
				instrument = s.instrument
				for _, kv := range strings.Fields(s.attributes) {
					key, _, _ := strings.Cut(kv, "=")
					keys["`"+key+"`"] = true
				}
			}
			attributes := "–"
			if len(keys) > 0 {
				attributes = strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
			}
			rows = append(rows, "| `"+m.Name+"` | "+instrument+" | `"+m.Unit+"` | "+attributes+" |")
		}
		var listed []string
		for line := range strings.Lines(string(page)) {
			if cells := strings.SplitN(line, "|", 7); strings.HasPrefix(line, "| `gcslock.") && len(cells) == 7 {
				listed = append(listed, strings.Join(cells[:5], "|")+"|")
			}
		}
		slices.Sort(rows)
		slices.Sort(listed)
		if !slices.Equal(rows, listed) {
			t.Errorf("the page lists\n\t%s\nwant\n\t%s", strings.Join(listed, "\n\t"), strings.Join(rows, "\n\t"))
		}
	})
}

// TestNoopProvider: what is not enabled costs no attributes, and nothing is
// recorded.
func TestNoopProvider(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.all()
		if metrics := w.collect(); len(metrics) != 0 {
			t.Errorf("measured %v", metrics)
		}
		if len(w.spans.Ended()) == 0 {
			t.Error("no spans, which were asked for")
		}
	}, WithMeterProvider(noop.NewMeterProvider()))
}

func TestNewRefuses(t *testing.T) {
	for name, opt := range map[string]Option{
		"nil option": nil, "nil meters": WithMeterProvider(nil), "nil tracers": WithTracerProvider(nil),
	} {
		if _, err := New(opt); err == nil || !strings.HasPrefix(err.Error(), "otelgcslock: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The global providers, which do nothing unless a program sets others.
	if _, err := New(); err != nil {
		t.Error(err)
	}
}
