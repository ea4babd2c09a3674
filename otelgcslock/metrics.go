package otelgcslock

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gcslock/gcslock"
)

// Bounds of the histograms, in seconds. A wait or a hold is anything from a
// request to a day; the default bounds are made for milliseconds. Those of a
// refresh begin like the convention's for requests, and end with the longest
// default interval.
var (
	longBounds  = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400}
	shortBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20}
)

// instruments are what is measured. Their names follow
// https://opentelemetry.io/docs/specs/semconv/general/naming/: seconds, no unit
// and no total in a name, counters of countable things in the plural, up-down
// counters not.
type instruments struct {
	wait, hold, refresh                      metric.Float64Histogram
	requests, contentions, takeovers, losses metric.Int64Counter
	active                                   metric.Int64UpDownCounter
}

func (i *instruments) make(meter metric.Meter) error {
	var errs []error
	histogram := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"),
			metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	i.wait = histogram("gcslock.wait.duration", "Time from the call until the lock was acquired, or the acquisition failed.", longBounds)
	i.hold = histogram("gcslock.hold.duration", "Time that a lease was held, until its loss or release.", longBounds)
	i.refresh = histogram("gcslock.refresh.duration", "Time of a refresh with all its attempts.", shortBounds)
	i.requests = counter("gcslock.requests", "{request}", "Requests sent for acquisitions, refreshes and releases.")
	i.contentions = counter("gcslock.contentions", "{contention}", "Holders that acquisitions met.")
	i.takeovers = counter("gcslock.takeovers", "{takeover}", "Stale locks that were taken over.")
	i.losses = counter("gcslock.losses", "{lease}", "Leases that were lost.")
	var err error
	i.active, err = meter.Int64UpDownCounter("gcslock.lease.active", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that are held now."))
	return errors.Join(append(errs, err)...)
}

// measure records what an event means for the metrics.
func (o *observer) measure(ctx context.Context, e gcslock.Event) {
	switch e.Kind {
	case gcslock.EventContended:
		o.count(ctx, o.contentions, 1, e)
	case gcslock.EventTakenOver:
		o.count(ctx, o.takeovers, 1, e, takeoverKey.String(string(e.Reason)))
	case gcslock.EventAcquired:
		o.record(ctx, o.wait, e)
		o.count(ctx, o.requests, e.Attempts, e, operationKey.String(acquire))
		o.count(ctx, o.active, 1, e)
	case gcslock.EventAcquireFailed:
		o.record(ctx, o.wait, e)
		o.count(ctx, o.requests, e.Attempts, e, operationKey.String(acquire))
	case gcslock.EventRefreshed, gcslock.EventRefreshFailed:
		o.record(ctx, o.refresh, e)
		o.count(ctx, o.requests, e.Attempts, e, operationKey.String(refresh))
	case gcslock.EventLost:
		o.count(ctx, o.losses, 1, e, lossKey.String(string(e.Reason)))
		o.end(ctx, e)
	case gcslock.EventReleased:
		o.end(ctx, e)
	}
}

// end records the end of a lease.
func (o *observer) end(ctx context.Context, e gcslock.Event) {
	o.record(ctx, o.hold, e, outcomeKey.String(string(e.Kind)))
	o.count(ctx, o.requests, e.Attempts, e, operationKey.String(release))
	o.count(ctx, o.active, -1, e)
}

// A counter is a metric.Int64Counter or a metric.Int64UpDownCounter.
type counter interface {
	Add(ctx context.Context, n int64, opts ...metric.AddOption)
	Enabled(ctx context.Context) bool
}

func (o *observer) count(ctx context.Context, c counter, n int, e gcslock.Event, more ...attribute.KeyValue) {
	if n != 0 && c.Enabled(ctx) {
		c.Add(ctx, int64(n), metric.WithAttributes(o.attributes(e, more)...))
	}
}

// record adds the event's duration, with the type of its error.
func (o *observer) record(ctx context.Context, h metric.Float64Histogram, e gcslock.Event, more ...attribute.KeyValue) {
	if !h.Enabled(ctx) {
		return
	}
	if e.Err != nil {
		more = append(more, errorKey.String(errorType(e.Err)))
	}
	h.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(o.attributes(e, more)...))
}

// attributes are those that name the lock, and more.
func (o *observer) attributes(e gcslock.Event, more []attribute.KeyValue) []attribute.KeyValue {
	more = append(more, bucketKey.String(e.Bucket))
	if o.objects {
		more = append(more, objectKey.String(e.Object))
	}
	return more
}
