package otelgcslock

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

const (
	holderOwnerKey = attribute.Key("gcslock.holder.owner")
	holderTokenKey = attribute.Key("gcslock.holder.token")
	tokenKey       = attribute.Key("gcslock.token")
	requestsKey    = attribute.Key("gcslock.request.count")
)

// trace records what an event means for the trace.
func (o *observer) trace(ctx context.Context, e gcslock.Event) {
	switch e.Kind {
	case gcslock.EventContended:
		o.note(ctx, e)
	case gcslock.EventTakenOver:
		o.note(ctx, e, takeoverKey.String(string(e.Reason)))
	case gcslock.EventAcquired, gcslock.EventAcquireFailed:
		o.span(ctx, "gcslock.acquire", e)
	case gcslock.EventRefreshFailed:
		o.span(ctx, "gcslock.refresh", e)
	case gcslock.EventLost:
		o.note(ctx, e, lossKey.String(string(e.Reason)))
		o.span(ctx, "gcslock.hold", e, outcomeKey.String(string(e.Kind)), lossKey.String(string(e.Reason)))
	case gcslock.EventReleased:
		o.span(ctx, "gcslock.hold", e, outcomeKey.String(string(e.Kind)))
	}
}

// note adds an event to the caller's span.
func (o *observer) note(ctx context.Context, e gcslock.Event, more ...attribute.KeyValue) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	more = append(more, lockAttributes(e)...)
	if e.Holder != nil {
		more = append(more, holderOwnerKey.String(inside.Printable(e.Holder.Owner)), holderTokenKey.Int64(e.Holder.Generation))
	}
	span.AddEvent("gcslock."+string(e.Kind), trace.WithAttributes(more...))
}

// span makes the span of what is over now and took the event's duration.
func (o *observer) span(ctx context.Context, name string, e gcslock.Event, more ...attribute.KeyValue) {
	end := time.Now()
	_, span := o.tracer.Start(ctx, name, trace.WithTimestamp(end.Add(-e.Duration)))
	if span.IsRecording() {
		span.SetAttributes(append(more, lockAttributes(e)...)...)
		if e.Attempts > 0 {
			span.SetAttributes(requestsKey.Int(e.Attempts))
		}
		if e.Err != nil {
			span.SetAttributes(errorKey.String(errorType(e.Err)))
			span.SetStatus(codes.Error, e.Err.Error())
		}
	}
	span.End(trace.WithTimestamp(end))
}

// lockAttributes name the lock and the lease. Those of a span may have as many
// values as they like.
func lockAttributes(e gcslock.Event) []attribute.KeyValue {
	attrs := []attribute.KeyValue{bucketKey.String(e.Bucket), objectKey.String(e.Object)}
	if e.Token != 0 {
		attrs = append(attrs, tokenKey.Int64(e.Token))
	}
	return attrs
}
