package otelgcslock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

var replace = inside.Replace.(func(*gcslock.Lock, inside.Seams))

// A world is a Cloud Storage in virtual time, and the SDK that collects what is
// told of its locks.
type world struct {
	*testing.T
	server *gcstest.Server
	bucket *storage.BucketHandle
	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
	option gcslock.Option
}

func inWorld(t *testing.T, f func(t *testing.T, w *world), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: gcstest.New("jobs"), reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
		client, err := w.server.Client(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		w.bucket = client.Bucket("jobs")
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
		w.tracer = tracers.Tracer("test")
		observer, err := New(append([]Option{
			WithMeterProvider(metric.NewMeterProvider(metric.WithReader(w.reader))), WithTracerProvider(tracers),
		}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		w.option = gcslock.WithObserver(observer)
		f(t, w)
	})
}

// lock is an observed lock on the one object.
func (w *world) lock(owner string, opts ...gcslock.Option) *gcslock.Lock {
	w.Helper()
	l, err := gcslock.New(w.bucket, "nightly/lock", append([]gcslock.Option{
		w.option, gcslock.WithOwner(owner), gcslock.WithManualRefresh(), gcslock.WithWait(time.Second, time.Second),
	}, opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	replace(l, inside.Seams{Now: virtual, Random: func(time.Duration) time.Duration { return 0 }})
	return l
}

// virtual are a machine's clocks. One of the real ones, that which goes on in
// suspend, is not the bubble's.
func virtual() inside.Reading {
	now := time.Now()
	return inside.Reading{Mono: now.Sub(epoch), Awake: now.Sub(epoch), Wall: now}
}

var epoch = time.Unix(0, 0)

func (w *world) acquire(ctx context.Context, owner string, opts ...gcslock.Option) *gcslock.Lease {
	w.Helper()
	lease, err := w.lock(owner, opts...).Acquire(ctx)
	if err != nil {
		w.Fatal(err)
	}
	return lease
}

func (w *world) inject(op gcstest.Op, times int, do gcstest.Action) *gcstest.Injection {
	return w.server.Inject(gcstest.Fault{Op: op, Times: times, Do: do})
}

// failing asserts that an error says so.
func (w *world) failing(err error, says string) {
	w.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		w.Errorf("error %v, want one that says %q", err, says)
	}
}

func (w *world) fine(err error) {
	w.Helper()
	if err != nil {
		w.Error(err)
	}
}

// all has everything happen that is measured, under a span of the caller's.
func (w *world) all() {
	ctx, caller := w.tracer.Start(context.Background(), "caller")
	defer caller.End()

	// A life in which another one is kept out.
	lease := w.acquire(ctx, "a")
	time.Sleep(10 * time.Second)
	w.inject(gcstest.Update, 1, gcstest.DelayReply(2*time.Second))
	w.fine(lease.Refresh(ctx))
	_, err := w.lock("b").TryAcquire(ctx)
	w.failing(err, "locked by \"a\"")
	w.fine(lease.Release(ctx))

	// Lost by time. The release of what is lost counts for nothing.
	lost := w.acquire(ctx, "a", gcslock.WithMaxHold(5*time.Second))
	<-lost.Context().Done()
	synctest.Wait()
	w.failing(lost.Release(ctx), "longer than 5s")

	// A crash, a takeover, a refresh that fails, and a release that finds nothing.
	crashed, err := gcslock.New(w.bucket, "nightly/lock", gcslock.WithOwner("crashed"), gcslock.WithManualRefresh())
	w.fine(err)
	_, err = crashed.Acquire(ctx)
	w.fine(err)
	time.Sleep(63 * time.Second)
	lease = w.acquire(ctx, "a")
	outage := w.inject(gcstest.Update, 0, gcstest.FailStatus(503))
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	w.failing(lease.Refresh(soon), "503")
	outage.Remove()
	w.server.Delete("jobs", "nightly/lock")
	w.failing(lease.Release(ctx), "deleted or replaced")

	// A release that is not permitted. The object stays.
	lease = w.acquire(ctx, "a")
	w.inject(gcstest.Delete, 1, gcstest.Forbid("storage.objects.delete"))
	w.failing(lease.Release(ctx), "storage.objects.delete")
	_ = w.acquire(ctx, "a", gcslock.WithReclaim())
}

// collect is what the SDK has of this package's metrics.
func (w *world) collect() []metricdata.Metrics {
	w.Helper()
	var data metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &data); err != nil {
		w.Fatal(err)
	}
	for _, scope := range data.ScopeMetrics {
		if scope.Scope.Name != ScopeName {
			w.Errorf("metrics of scope %s", scope.Scope.Name)
			continue
		}
		return scope.Metrics
	}
	return nil
}

// A series is one of a metric, as text.
type series struct{ name, instrument, unit, attributes, value string }

func (s series) String() string { return s.name + "{" + s.attributes + "} " + s.value }

func seriesOf(m metricdata.Metrics) []series {
	var all []series
	add := func(instrument string, set attribute.Set, value any) {
		all = append(all, series{m.Name, instrument, m.Unit, text(set.ToSlice()), fmt.Sprint(value)})
	}
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add("histogram", p.Attributes, fmt.Sprintf("%d in %gs", p.Count, p.Sum))
		}
	case metricdata.Sum[int64]:
		instrument := "up-down counter"
		if data.IsMonotonic {
			instrument = "counter"
		}
		for _, p := range data.DataPoints {
			add(instrument, p.Attributes, p.Value)
		}
	default:
		add(fmt.Sprintf("%T", data), attribute.Set{}, nil)
	}
	return all
}

// text is attributes without those that name the lock, which all have.
func text(attrs []attribute.KeyValue) string {
	var parts []string
	for _, kv := range attrs {
		if kv.Key != bucketKey && kv.Key != objectKey {
			parts = append(parts, string(kv.Key)+"="+kv.Value.String())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
