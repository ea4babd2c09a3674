package otelgcslock

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

// A freeStore says yes at no cost, so that what is left is the lock's own.
type freeStore struct{}

var freeReply = inside.Reply{Object: inside.Object{Version: inside.Version{Generation: 1, Metageneration: 1}}}

func (freeStore) Create(context.Context, map[string]string) inside.Reply { return freeReply }
func (freeStore) Read(context.Context) inside.Reply                      { return freeReply }
func (freeStore) Update(context.Context, inside.Version, map[string]string) inside.Reply {
	return freeReply
}
func (freeStore) Remove(context.Context, inside.Version) inside.Reply { return freeReply }

// A sink takes spans and does nothing with them.
type sink struct{}

func (sink) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (sink) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (sink) Shutdown(context.Context) error                  { return nil }
func (sink) ForceFlush(context.Context) error                { return nil }

// benchmark runs it with nobody who observes, with somebody who does nothing, with
// the global providers, which do nothing, and with the SDK's.
func benchmark(b *testing.B, store inside.Store, run func(*testing.B, *gcslock.Lock)) {
	nothing := gcslock.ObserverFunc(func(context.Context, gcslock.Event) {})
	meters := WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	tracers := WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(sink{})))
	for _, c := range []struct {
		name      string
		observers []gcslock.Observer
	}{
		{"nobody", nil}, {"observed", []gcslock.Observer{nothing}}, {"no providers", made(b)},
		{"metrics", made(b, meters)}, {"metrics and traces", made(b, meters, tracers)},
	} {
		b.Run(c.name, func(b *testing.B) {
			client, err := gcstest.New("jobs").Client(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			var opts []gcslock.Option
			for _, o := range c.observers {
				opts = append(opts, gcslock.WithObserver(o))
			}
			l, err := gcslock.New(client.Bucket("jobs"), "nightly/lock", opts...)
			if err != nil {
				b.Fatal(err)
			}
			replace(l, inside.Seams{Store: store, Now: virtual, Random: rand.N[time.Duration]})
			b.ReportAllocs()
			run(b, l)
		})
	}
}

// made is an observer of this package's.
func made(b *testing.B, opts ...Option) []gcslock.Observer {
	o, err := New(opts...)
	if err != nil {
		b.Fatal(err)
	}
	return []gcslock.Observer{o}
}

func cycles(b *testing.B, l *gcslock.Lock) {
	for b.Loop() {
		lease, err := l.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCycle is an acquisition and its release, below the storage client.
func BenchmarkCycle(b *testing.B) { benchmark(b, freeStore{}, cycles) }

// BenchmarkClientCycle is the same through the storage client, to a server in the
// same process.
func BenchmarkClientCycle(b *testing.B) { benchmark(b, nil, cycles) }

// BenchmarkRefresh is one refresh, below the storage client.
func BenchmarkRefresh(b *testing.B) {
	benchmark(b, freeStore{}, func(b *testing.B, l *gcslock.Lock) {
		lease, err := l.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := lease.Refresh(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if err := lease.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
}
