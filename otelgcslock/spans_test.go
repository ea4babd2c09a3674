package otelgcslock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/gcslock/gcslock/gcstest"
)

// TestSpans: every span of a scenario, all in the caller's trace, and the events
// of the caller's own span.
func TestSpans(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.all()
		ended := w.spans.Ended()
		caller := ended[len(ended)-1]
		spans := describe(t, caller, ended[:len(ended)-1])
		want := []string{
			"gcslock.acquire 0s to 0s",
			"gcslock.acquire 12s to 12s error.type=locked Error",
			"gcslock.hold 0s to 12s gcslock.hold.outcome=released",
			"gcslock.acquire 12s to 12s",
			"gcslock.hold 12s to 17s error.type=lock_abandoned gcslock.hold.outcome=lost gcslock.loss.reason=max_hold Error",
			"gcslock.acquire 1m20s to 1m20s",
			"gcslock.refresh 1m20s to 1m20.05s error.type=503 Error",
			"gcslock.hold 1m20s to 1m20.05s error.type=lock_abandoned gcslock.hold.outcome=lost gcslock.loss.reason=deleted Error",
			"gcslock.acquire 1m20.05s to 1m20.05s",
			"gcslock.hold 1m20.05s to 1m20.05s error.type=403 gcslock.hold.outcome=released Error",
			"gcslock.acquire 1m20.05s to 1m20.05s",
		}
		if !slices.Equal(spans, want) {
			t.Errorf("spans are\n\t%s\nwant\n\t%s", strings.Join(spans, "\n\t"), strings.Join(want, "\n\t"))
		}
		var events []string
		for _, e := range caller.Events() {
			line := fmt.Sprintf("%s at %v", e.Name, e.Time.Sub(caller.StartTime()))
			for _, kv := range e.Attributes {
				if kv.Key == takeoverKey || kv.Key == lossKey || kv.Key == holderOwnerKey {
					line += fmt.Sprintf(" %s=%s", kv.Key, kv.Value.String())
				}
			}
			events = append(events, line)
		}
		want = []string{
			"gcslock.contended at 12s gcslock.holder.owner=a",
			"gcslock.lost at 17s gcslock.loss.reason=max_hold",
			"gcslock.taken_over at 1m20s gcslock.takeover.reason=expired gcslock.holder.owner=crashed",
			"gcslock.lost at 1m20.05s gcslock.loss.reason=deleted",
			"gcslock.taken_over at 1m20.05s gcslock.takeover.reason=reclaimed gcslock.holder.owner=a",
		}
		if !slices.Equal(events, want) {
			t.Errorf("events are\n\t%s\nwant\n\t%s", strings.Join(events, "\n\t"), strings.Join(want, "\n\t"))
		}
	})
}

// describe is the spans as text, which all name the lock and are the caller's
// children.
func describe(t *testing.T, caller sdktrace.ReadOnlySpan, spans []sdktrace.ReadOnlySpan) []string {
	t.Helper()
	var lines []string
	for _, s := range spans {
		line := fmt.Sprintf("%s %v to %v", s.Name(), s.StartTime().Sub(caller.StartTime()), s.EndTime().Sub(caller.StartTime()))
		if s.Parent().SpanID() != caller.SpanContext().SpanID() || s.InstrumentationScope().Name != ScopeName {
			t.Errorf("%s has parent %v, scope %s", line, s.Parent().SpanID(), s.InstrumentationScope().Name)
		}
		var bucket, object, token string
		var rest []string
		for _, kv := range s.Attributes() {
			switch kv.Key {
			case bucketKey:
				bucket = kv.Value.AsString()
			case objectKey:
				object = kv.Value.AsString()
			case tokenKey:
				token = kv.Value.String()
			case requestsKey:
			default:
				rest = append(rest, string(kv.Key)+"="+kv.Value.String())
			}
		}
		slices.Sort(rest)
		held := s.Name() != "gcslock.acquire" || s.Status().Code != codes.Error
		if bucket != "jobs" || object != "nightly/lock" || (token != "") != held {
			t.Errorf("%s is of bucket %q, object %q, token %q", line, bucket, object, token)
		}
		if s.Status().Code != codes.Unset {
			rest = append(rest, s.Status().Code.String())
		}
		lines = append(lines, strings.Join(append([]string{line}, rest...), " "))
	}
	return lines
}

// TestWaitSpan begins with the call.
func TestWaitSpan(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, caller := w.tracer.Start(t.Context(), "caller")
		defer caller.End()
		first := w.acquire(ctx, "a")
		time.AfterFunc(9500*time.Millisecond, func() { w.fine(first.Release(t.Context())) })
		began := time.Now()
		w.fine(w.acquire(ctx, "b").Release(ctx))
		var found bool
		for _, s := range w.spans.Ended() {
			if s.Name() == "gcslock.acquire" && s.StartTime().Equal(began) && s.EndTime().Sub(began) == 10*time.Second {
				found = true
			}
		}
		if !found {
			t.Errorf("no span of the wait among %v", w.spans.Ended())
		}
	})
}

// TestNoopTracer: spans cost nothing where nobody wants them.
func TestNoopTracer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.all()
		if n := len(w.spans.Ended()); n != 1 {
			t.Errorf("%d spans, want the caller's own", n)
		}
		if len(w.collect()) == 0 {
			t.Error("no metrics, which were asked for")
		}
	}, WithTracerProvider(noop.NewTracerProvider()))
}

// TestHostileHolder: what a stranger wrote into the object is escaped.
func TestHostileHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Put("jobs", "nightly/lock", gcstest.Object{Metadata: map[string]string{"owner": "\x1b[31mroot"}})
		ctx, caller := w.tracer.Start(t.Context(), "caller")
		_, err := w.lock("a").TryAcquire(ctx)
		w.failing(err, "is locked")
		caller.End()
		var owners []string
		for _, s := range w.spans.Ended() {
			for _, e := range s.Events() {
				for _, kv := range e.Attributes {
					if kv.Key == holderOwnerKey {
						owners = append(owners, kv.Value.AsString())
					}
				}
			}
		}
		if !slices.Equal(owners, []string{`\x1b[31mroot`}) {
			t.Errorf("holders %q", owners)
		}
	})
}
