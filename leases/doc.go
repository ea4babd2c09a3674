// Package leases runs background workers on exactly one of several instances
// of a program: a stream consumer, a backfill, a cleanup loop. Each worker has a
// lock of package gcslock, one Cloud Storage object; the instance that holds it,
// the leader, runs the worker, and the others follow.
//
//	m := leases.NewManager(client.Bucket("jobs"), "workers", leases.Config{Enabled: true})
//	m.Go(ctx, "consumer", consume) // func(context.Context) error
//	m.Go(ctx, "cleanup", cleanUp)
//	<-ctx.Done()                 // SIGTERM
//	err := m.Wait(20 * time.Second) // all have stopped, and others may start at once
//
// # Guarantee
//
// It is gcslock's: at most one instance has a valid lease on a worker's name,
// whatever crashes, is cut off or has a wrong clock. A worker whose lease is
// lost has its context cancelled, a tenth of the ttl before another instance
// can start. Two things are left to the worker. It has to stop when its context
// ends, within that tenth. And a process that is paused just before a write
// sends it after the pause: what must not happen then has to be refused where
// it arrives, by means of package fenced, with [Lease], or of [Token].
//
// # Pauses and cost
//
// A new instance looks at once, then every second for two minutes, and after
// that once in a RenewInterval; a change of the leader brings two minutes of
// quick looks, too. So a worker pauses for about a second in a rolling
// deployment, where an instance that has just started waits for one that stops,
// and for up to a RenewInterval where nobody has started or changed lately;
// [WithWatchInterval] buys a shorter one. After a crash it pauses until the
// ttl is over. A look is one read request. A leader sends one metadata update in
// a RenewInterval. docs/workers.md has the figures.
//
// # Errors
//
// Neither [NewManager] nor [Manager.Run] returns an error, so all that goes
// wrong is logged, to [slog.Default] unless [WithLogger] says otherwise, and
// shown by [Manager.Status]. What can never work, such as an empty name, is
// logged as an error, and that Run returns at once. What somebody may mend, such
// as a missing permission, is logged as an error and tried again after a
// RenewInterval.
package leases
