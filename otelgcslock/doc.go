// Package otelgcslock makes OpenTelemetry metrics and traces of what happens to
// locks. It is an observer, see [gcslock.WithObserver]:
//
//	observer, err := otelgcslock.New()
//	lock, err := gcslock.New(client.Bucket("jobs"), "nightly/lock", gcslock.WithObserver(observer))
//
// One observer serves all locks of a program. docs/observability.md lists the
// metrics, with units and attributes, what to alert on, and the cost.
//
// # Spans
//
// They belong to the trace of the context that a call was given, and are made
// when what they show is over, with its start; nothing is kept meanwhile.
//
//   - gcslock.acquire, from the call to the lease or the error;
//   - gcslock.hold, from the acquisition to the loss or the release;
//   - gcslock.refresh, of a refresh that failed in all its attempts. Of those that
//     succeed there are three a minute; they are in the metrics alone.
//
// Who is in the way, a takeover, and a loss are events of the caller's own span,
// too, at their time: a trace of a program that waits still shows for whom.
//
// # Dependencies
//
// The OpenTelemetry API alone, which the storage client brings as well. The SDK,
// and where it sends what it collects, are the program's choice.
package otelgcslock
