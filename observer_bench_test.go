package gcslock

import (
	"context"
	"testing"

	"github.com/gcslock/gcslock/gcstest"
)

// A freeStore says yes at no cost, so that what is left is the lock's own.
type freeStore struct{}

var freeReply = reply{object: stored{version: version{generation: 1, metageneration: 1}}}

func (freeStore) create(context.Context, map[string]string) reply          { return freeReply }
func (freeStore) read(context.Context) reply                               { return freeReply }
func (freeStore) update(context.Context, version, map[string]string) reply { return freeReply }
func (freeStore) remove(context.Context, version) reply                    { return freeReply }

// benchmarkObserver runs a benchmark without an observer and with one that does
// nothing.
func benchmarkObserver(b *testing.B, run func(*testing.B, *Lock)) {
	nothing := ObserverFunc(func(context.Context, Event) {})
	for _, c := range []struct {
		name string
		opts []Option
	}{{"nobody", nil}, {"observed", []Option{WithObserver(nothing)}}} {
		b.Run(c.name, func(b *testing.B) {
			client, err := gcstest.New(testBucket).Client(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			l, err := New(client.Bucket(testBucket), testObject, c.opts...)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			run(b, l)
		})
	}
}

func cycles(b *testing.B, l *Lock) {
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
func BenchmarkCycle(b *testing.B) {
	benchmarkObserver(b, func(b *testing.B, l *Lock) {
		l.store = freeStore{}
		cycles(b, l)
	})
}

// BenchmarkClientCycle is the same through the storage client, to a server in
// the same process.
func BenchmarkClientCycle(b *testing.B) { benchmarkObserver(b, cycles) }

// BenchmarkRefresh is one refresh, below the storage client.
func BenchmarkRefresh(b *testing.B) {
	benchmarkObserver(b, func(b *testing.B, l *Lock) {
		l.store = freeStore{}
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
