package main

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/storage"
	"github.com/spf13/cobra"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/shell"
)

// A breaker is one call of gcslock break.
type breaker struct {
	*looker
	id    int64
	force bool
}

func newBreak() *cobra.Command {
	b := &breaker{}
	cmd := &cobra.Command{
		Use:   "break gs://BUCKET/OBJECT --id GENERATION",
		Short: "Remove a lock that has nobody to release it",
		Long: `Removes the lock, if it still is the one with this ID, which status shows: the
lock object's generation. It shows whose lock that was. A lock that is gone by
now is no error; one with another ID is left alone.

A stale lock needs no breaking: the next one to acquire it takes it over. One
that looks alive is not broken without --force, nor is a foreign one, of which
nothing tells whether it is alive. The holder of a lock that is broken learns of
it at its next refresh, a third of its ttl later: until then two may be at work.

Two reads and a delete, and another read for a lock of Terraform's. Needs
storage.objects.get and delete, and list: without it a free lock may look forbidden.

` + exitCodeTable,
		Example: `  gcslock status gs://jobs/nightly/lock
  gcslock break gs://jobs/nightly/lock --id 1796145784000000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := b.parseLock(cmd, args); err != nil {
				return err
			}
			if !cmd.Flags().Changed("id") {
				return usageError{fmt.Errorf("want --id GENERATION: gcslock status %s shows it", shell.Word(args[0]))}
			}
			if b.id <= 0 {
				return usageError{fmt.Errorf("--id %d is no generation: gcslock status %s shows it", b.id, shell.Word(args[0]))}
			}
			return b.withClient(cmd, b.run)
		},
	}
	b.looker = newLooker(cmd)
	cmd.Flags().Int64Var(&b.id, "id", 0, "the lock's `generation`, as status shows it")
	cmd.Flags().BoolVar(&b.force, "force", false, "break a lock that looks alive, or is foreign")
	return cmd
}

func (b *breaker) run(ctx context.Context) error {
	attrs, _, err := b.read(ctx, storage.WithMaxAttempts(lookAttempts))
	if err != nil {
		return b.fail(exitStorage, err)
	}
	if attrs == nil {
		return b.gone()
	}
	r := b.reportOf(attrs)
	if r.Generation != b.id {
		return b.refuse(r, "")
	}
	if reason := refusals[r.State]; reason != "" && !b.force {
		return b.refuse(r, reason)
	}
	r.Terraform = b.readTerraform(ctx, attrs) // who it is: it will not be there to ask
	lock, err := gcslock.New(b.client.Bucket(b.bucket), b.object)
	if err != nil {
		return b.fail(exitStorage, err)
	}
	err = lock.Break(ctx, b.id)
	var held *gcslock.HeldError
	switch {
	case errors.Is(err, gcslock.ErrNotHeld):
		return b.gone()
	case errors.As(err, &held):
		return b.refuse(b.reportOn(&held.Holder), "")
	case err != nil:
		return b.fail(exitStorage, err)
	}
	if r.State == stateLive {
		b.warn("it looked alive: its holder learns of this at its next refresh, and two may be at work until then")
	}
	return b.tellRemoved(r, true)
}

// refusals are the states in which a lock is broken by force alone.
var refusals = map[string]string{
	stateLive:    "it looks alive: where its holder is gone for good, wait until it is stale, or add --force",
	stateForeign: "it is no lock of gcslock's, and nothing tells whether it is alive: where its holder is gone for good, add --force",
	stateUnknown: "no reply told the server's time, and it may be alive: where its holder is gone for good, add --force",
}

// refuse leaves the lock that is there alone. No reason: it is another one.
func (b *breaker) refuse(r report, reason string) error {
	if reason == "" {
		reason = fmt.Sprintf("%d is not the ID of the lock that is there now", b.id)
	}
	if b.json {
		if err := b.tellRemoved(r, false); err != nil {
			return err
		}
	}
	return b.fail(exitLocked, fmt.Errorf("not broken: %s; %s", reason, r.sentence()))
}

func (b *breaker) gone() error {
	if !b.json {
		_, err := fmt.Fprintf(b.screen, "%s is free already: there is nothing to break\n", b.lock)
		return err
	}
	return b.tellRemoved(b.freeReport(), false)
}

// tellRemoved shows the lock, and that it was removed, or in JSON that it was
// not.
func (b *breaker) tellRemoved(r report, removed bool) error {
	r.Removed = &removed
	if removed {
		r.BreakCommand = "" // it has done its work
	}
	return b.show("removed", r)
}
