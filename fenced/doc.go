// Package fenced keeps state in a Cloud Storage object that only the holder of a
// lock can write.
//
// A lease alone does not do that: a process that was paused just before its write
// goes on with it after the pause, when somebody else has long had the lock. Here
// the write itself is refused, by the server, where it arrives.
//
//	err := lock.Do(ctx, func(ctx context.Context, lease *gcslock.Lease) error {
//		state, err := fenced.Open(ctx, lease, client.Bucket("jobs").Object("nightly/state"))
//		if err != nil {
//			return err
//		}
//		return state.Update(ctx, advance)
//	})
//
// # Rule
//
// [Open] claims the object: it writes the lease's token into its metadata, which
// gives it a new metageneration. Then it asks the server whether the lock is still
// the lease's ([gcslock.Lease.Verify]). Every write carries the generation and the
// metageneration that the claim or the last write left. A later holder claims after
// it has acquired the lock, and from then on nothing that an earlier holder sends
// has the right numbers; an earlier holder that claims late fails the verification,
// and writes nothing. That needs neither clocks nor generations that increase.
// docs/fencing.md has the argument.
//
// It holds for all who write the object through this package under leases of one
// lock. Whoever else writes it, a person with a command line tool for instance, is
// not kept out, but is not overwritten either: see [ErrConflict].
//
// # Metadata
//
// The object's metadata get two keys, fence (the token of the last lease that
// claimed it, with its sequence where the lock was passed on, see
// [gcslock.WithLocalHandoff]) and fence-write (a random id of the write that made
// the content). An object that [WithInitial] is about to fill has a third, fence-empty, and no
// content: it counts as absent. All other metadata survive, and so do content type,
// encoding, language and disposition, cache control, custom time, storage class,
// and the name of the encryption key. Access control lists of the object's own do
// not, nor do object contexts and retention settings: a write makes a new object. One
// whose content encoding is gzip is refused, because downloads undo that.
//
// # Cost
//
// Open is a read and an update of the object, and a read of the lock: one request of
// class A and two of class B in Cloud Storage's price list; it is two uploads more
// where it makes the object. Read is one request, Write and Update are one and two.
// More where requests fail. Cloud Storage takes about one change a second of one
// object; what comes sooner waits.
//
// # Permissions
//
// storage.objects.get, create, update and delete on the object (an overwrite is a
// delete to IAM), storage.objects.get on the lock, and storage.objects.list, without
// which what is not there may look forbidden.
package fenced
