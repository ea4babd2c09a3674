// Package gcslock is a distributed lock for programs that have a Cloud Storage
// bucket and nothing else. The lock is one object: it is held exactly while the
// object exists.
//
//	lock, err := gcslock.New(client.Bucket("jobs"), "nightly/lock")
//	err = lock.Do(ctx, func(ctx context.Context, lease *gcslock.Lease) error {
//		return importOrders(ctx) // stops when ctx ends
//	})
//
// # Guarantee
//
// At most one [Lease] of a lock is valid at any time, [Lease.Err] being nil,
// whatever crashes, is paused, loses replies or has a wrong clock; provided
// that all who use the object follow this protocol, and under the clock model
// below. A holder that crashes is replaced after the ttl, without a person. A
// holder that cannot refresh is told before anybody else can have the lock: its
// context is cancelled, with a cause that is [ErrLockAbandoned], a tenth of the
// ttl earlier.
//
// What no lease can guarantee: a process that is paused, by its scheduler, a
// debugger or a suspended machine, goes on after the pause with what it was
// about to do, and does not know yet that its lease is gone. Writes that must
// not happen then have to be refused where they arrive, by a precondition of
// their own. Package fenced has Cloud Storage do that for state in an object.
//
// [Lock.Break] on a live lock, or anybody else who deletes its object, lets a
// second holder in before the first one learns of it, with its next refresh.
// Clients of the older format of this protocol (owner and expires-at alone)
// that share a lock with this one judge by their own clocks, and one whose
// clock is fast can remove a live lock.
//
// # Clock model
//
// No two machines' clocks are compared. A holder counts the validity of its
// lease, nine tenths of the ttl, from before it sent the last write that was
// acknowledged; time spent in suspend counts. A competitor calls an object
// stale by the server's clock (the Date of a reply against the object's updated
// time), or after it has watched it unchanged for a whole ttl, counted from
// after the read that first showed it. So the holder's lease ends before
// anybody else's can begin, if the two machines' clocks run at rates that differ
// by less than a tenth. Wall clocks may be wrong, and may step.
//
// # Limits
//
// The shortest ttl is 3 s, which suits a bucket nearby; the default of 60 s
// survives an outage of half a minute. The longest is 24 h. Cloud Storage
// takes about one change a second of one object, so a lock changes hands about
// once in two seconds at the most, creation and deletion being a change each.
// Those who wait through one Lock get in in the order in which they came; among
// processes no order is promised. On a bucket with object versioning,
// if somebody deletes the lock object without naming its generation, the
// release of its former holder removes the noncurrent copy and reports
// success, where a refresh would have reported the loss.
//
// # Cost
//
// An uncontended acquisition is one request (an upload, class A in Cloud
// Storage's price list), a refresh one (a metadata update, class A), a release
// one (a delete, free); [Lease.Verify] is a read. With the default ttl a lease
// costs 180 to 200 refreshes for each hour that it is held. A waiter sends reads
// (class B): every 0.1 to 0.3 s while the lock changes hands, less often the longer
// the same holder is there or the one before was, and once a second after 4 s, see [WithWait]; and an upload
// only when the object is gone. Of those who wait through one Lock only the first
// sends anything, and none does while another lease of that Lock is held.
//
// A Lock that has released and is wanted again at once pauses first, for half of what
// it was held for, 50 ms at the most, or an eighth of that, a second at the most; and
// where others were met, for more than half as long as a turn of each took. Who holds
// it for no time at all, or comes back later than that, does not wait. Where Cloud
// Storage refuses changes for coming too soon, a Lock that has met nobody pauses for
// 1.5 s after the first of each eight releases.
// [WithLocalHandoff] lets goroutines of one process have the lock one after the other
// without any request.
//
// # Permissions
//
// storage.objects.create, get, update, delete and list on the bucket, as in the
// role roles/storage.objectUser. Requests that lack one fail at once, and their
// error names it. Nothing is listed, but without list a missing object may be
// answered with 403 instead of 404, and a free lock looks forbidden; gcslock check
// tries that.
//
// # Token
//
// [Lease.Token] is the generation of the lock object: unique to the
// acquisition, and the one ID of the lock in errors, [Info] and [Lock.Break]. With
// [WithLocalHandoff] it is that of a run of leases, which [Lease.Sequence] numbers.
// Generations do not have to increase: compare them for equality only.
//
// # Seen from outside
//
// [WithLogger] has log lines, and [WithObserver] events; package otelgcslock makes
// OpenTelemetry metrics and traces of those.
//
// # Tests
//
// Package gcstest is a strict Cloud Storage for tests of programs that use
// this one. In a synctest bubble make the lock within the bubble.
package gcslock
