package otelgcslock_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/otelgcslock"
)

func ExampleNew() {
	ctx := context.Background()
	client, err := gcstest.New("jobs").Client(ctx) // of a program: storage.NewClient(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// A program sets its providers once, with an exporter that it likes.
	reader := metric.NewManualReader()
	observer, err := otelgcslock.New(otelgcslock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		log.Fatal(err)
	}
	lock, err := gcslock.New(client.Bucket("jobs"), "nightly/lock", gcslock.WithObserver(observer))
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(ctx context.Context, lease *gcslock.Lease) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	var measured metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &measured); err != nil {
		log.Fatal(err)
	}
	for _, m := range measured.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Output:
	// gcslock.wait.duration
	// gcslock.hold.duration
	// gcslock.requests
	// gcslock.lease.active
}
