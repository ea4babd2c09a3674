package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
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
	if !strings.HasSuffix(r.object, ".tflock") {
		return fmt.Errorf("--payload-terraform: %q is no state lock of Terraform: its name does not end in .tflock", r.object)
	}
	r.foreign = r.foreignLock(terraform.Parse([]string{"terraform"}).ForceUnlock)
	return r.lockInfo(cmp.Or(r.operation, "gcslock run"), ownVersion())
}

// lockInfo makes Terraform's lock information the payload.
func (r *runner) lockInfo(operation, version string) error {
	url := (&gcslock.Info{Bucket: r.bucket, Object: r.object}).URL()
	info := fmt.Sprintf("held through gcslock, pid %d: it frees itself %v after a crash; force-unlock takes it from a run that is alive", os.Getpid(), r.ttl)
	body, err := json.Marshal(terraform.NewLockInfo(operation, info, version, url))
	if err != nil {
		return err
	}
	r.options = append(r.options, gcslock.WithPayload("application/json", body))
	return nil
}

const (
	// foreignLimit is how long reading a foreign lock's body may hold up the
	// wait for it.
	foreignLimit = 5 * time.Second

	// foreignSize is more than lock information has.
	foreignSize = 64 << 10
)

// foreignLock gives words for locks that are none of ours: Terraform's own lock
// information, where it is one, and how to remove it. Each is read once. It is
// not safe for concurrent use.
func (r *runner) foreignLock(forceUnlock func(id int64) string) func(context.Context, *gcslock.Info) string {
	var last terraform.LockInfo
	var read int64 // the generation that last is of
	return func(ctx context.Context, who *gcslock.Info) string {
		if read != who.Generation {
			info, err := r.readLockInfo(ctx, who.Generation)
			if err != nil {
				return fmt.Sprintf("an object that can't be read as a lock of Terraform (%s), and is never taken over (generation %d)",
					oneLine(err), who.Generation)
			}
			last, read = info, who.Generation
		}
		who.Owner, who.Operation, who.AcquiredAt = last.Who, last.Operation, last.Created
		return fmt.Sprintf("Terraform's own lock, which never expires and is never taken over: %q by %q, Terraform %q, since %s (%s ago), ID %d; if that run is dead: %s",
			last.Operation, last.Who, last.Version, clockTime(last.Created), time.Since(last.Created).Round(time.Second),
			who.Generation, forceUnlock(who.Generation))
	}
}

func (r *runner) readLockInfo(ctx context.Context, generation int64) (terraform.LockInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, foreignLimit)
	defer cancel()
	body, err := r.client.Bucket(r.bucket).Object(r.object).Generation(generation).NewReader(ctx)
	if err != nil {
		return terraform.LockInfo{}, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, foreignSize))
	if err != nil {
		return terraform.LockInfo{}, err
	}
	return terraform.ParseLockInfo(text)
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
