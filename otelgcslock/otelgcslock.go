package otelgcslock

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gcslock/gcslock"
)

// ScopeName is the name of the instrumentation scope: this package's path.
const ScopeName = "github.com/gcslock/gcslock/otelgcslock"

// An Option changes a setting of [New].
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	objects bool
}

// WithMeterProvider sets where metrics go; the default is the global
// [otel.GetMeterProvider].
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(s *settings) { s.meters = p })
}

// WithTracerProvider sets where spans go; the default is the global
// [otel.GetTracerProvider].
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(s *settings) { s.tracers = p })
}

// WithObjectNames adds the lock object's name to the metrics, as the attribute
// gcslock.object.name. It is for programs with few locks whose names do not
// change: each name is a time series of its own, for as long as the process
// lives, and names that are made anew for each run fill any metrics store. Spans
// have it always.
func WithObjectNames() Option {
	return optionFunc(func(s *settings) { s.objects = true })
}

// New returns an observer that records metrics and spans. It fails where a
// provider is nil or refuses an instrument.
func New(opts ...Option) (gcslock.Observer, error) {
	s := settings{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("otelgcslock: an option is nil")
		}
		o.apply(&s)
	}
	if s.meters == nil || s.tracers == nil {
		return nil, errors.New("otelgcslock: a provider is nil")
	}
	o := &observer{
		objects: s.objects,
		tracer:  s.tracers.Tracer(ScopeName, trace.WithInstrumentationVersion(version())),
	}
	meter := s.meters.Meter(ScopeName, metric.WithInstrumentationVersion(version()))
	if err := o.instruments.make(meter); err != nil {
		return nil, fmt.Errorf("otelgcslock: %w", err)
	}
	return o, nil
}

// version is this module's as the program was built with it, empty where the
// build does not tell.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "github.com/gcslock/gcslock" {
			return m.Version
		}
	}
	return ""
}

// An observer has no state of its own: all that it records is in the events.
type observer struct {
	instruments
	tracer  trace.Tracer
	objects bool
}

// The attributes, and the values of those that this package gives values.
const (
	bucketKey    = attribute.Key("gcslock.bucket.name")
	objectKey    = attribute.Key("gcslock.object.name")
	operationKey = attribute.Key("gcslock.operation.name")
	outcomeKey   = attribute.Key("gcslock.hold.outcome")
	lossKey      = attribute.Key("gcslock.loss.reason")
	takeoverKey  = attribute.Key("gcslock.takeover.reason")
	errorKey     = attribute.Key("error.type") // of the semantic conventions

	acquire = "acquire"
	refresh = "refresh"
	release = "release"
)

// Observe records one event.
func (o *observer) Observe(ctx context.Context, e gcslock.Event) {
	o.measure(ctx, e)
	o.trace(ctx, e)
}
