package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
	"github.com/gcslock/gcslock/internal/inside"
)

// describe has the lock object say of this run what Terraform's own would.
func (t *terraformRun) describe(ctx context.Context) error {
	if err := t.lookUp(); err != nil {
		return err
	}
	version, err := terraform.Version(ctx, t.path)
	if err != nil {
		// A lock without it is as good.
		t.tell(message{Event: eventWarning, Text: "the lock does not tell the version: " + oneLine(err)})
	}
	operation, _ := t.parsed.Operation()
	t.foreign = t.foreignLock(t.parsed.ForceUnlock)
	return t.lockInfo(operation, version)
}

// becomeStateLock is describe for gcslock run --payload-terraform.
func (r *runner) becomeStateLock() error {
	if !strings.HasSuffix(r.object, terraform.Suffix) {
		return fmt.Errorf("--payload-terraform: %q is no state lock of Terraform: its name does not end in %s", r.object, terraform.Suffix)
	}
	r.foreign = r.foreignLock(terraform.ForceUnlock)
	return r.lockInfo(cmp.Or(r.operation, "gcslock run"), ownVersion())
}

// lockInfo makes Terraform's lock information the payload.
func (r *runner) lockInfo(operation, version string) error {
	info := fmt.Sprintf("held through gcslock, pid %d: it frees itself %v after a crash; force-unlock takes it from a run that is alive", os.Getpid(), r.ttl)
	content, err := terraform.NewLockInfo(operation, info, version, inside.URL(r.bucket, r.object)).Content()
	if err != nil {
		return err
	}
	r.options = append(r.options, gcslock.WithPayload("application/json", content))
	return nil
}

// foreignLimit is how long reading a foreign lock's content may hold up the wait
// for it.
const foreignLimit = 5 * time.Second

// foreignLock gives words for locks that are none of ours: Terraform's own lock
// information, where it is one, and how to remove it. Each is read once. It is
// not safe for concurrent use.
func (r *runner) foreignLock(forceUnlock func(id int64) string) func(context.Context, *gcslock.Info) string {
	var last *terraform.LockInfo
	var read int64 // the generation that last is of
	return func(ctx context.Context, who *gcslock.Info) string {
		if read != who.Generation {
			ctx, cancel := context.WithTimeout(ctx, foreignLimit)
			defer cancel()
			info, err := readLockInfo(ctx, r.client.Bucket(r.bucket).Object(r.object).Generation(who.Generation))
			if err != nil {
				return fmt.Sprintf("an object that can't be read as a lock of Terraform (%s), and is never taken over, generation %d",
					oneLine(err), who.Generation)
			}
			last, read = info, who.Generation
		}
		who.Owner, who.Operation, who.AcquiredAt = last.Who, last.Operation, last.CreatedAt()
		return fmt.Sprintf("Terraform's own lock, which never expires and is never taken over: %q by %q, Terraform %q, since %s, ID %d; if that run is dead: %s",
			last.Operation, last.Who, last.Version, moment(who.AcquiredAt, time.Now()), who.Generation, forceUnlock(who.Generation))
	}
}

// explain is the error of a wait for the lock, in the words of foreign for the
// holders that are known to that alone.
func (r *runner) explain(ctx context.Context, err error) error {
	var held *gcslock.HeldError
	if r.foreign == nil || !errors.As(err, &held) || !held.Holder.Foreign {
		return err
	}
	over := ""
	if errors.Is(err, context.DeadlineExceeded) {
		over = "the wait is over: "
	}
	holder := held.Holder
	// The command to copy comes last.
	return fmt.Errorf("%s%s is locked by %s", over, r.lock, r.foreign(ctx, &holder))
}
