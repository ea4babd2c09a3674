package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

// A Target is the lock to look at, with the identity of the bucket handle's
// client.
type Target struct {
	Bucket *storage.BucketHandle
	Object string
	// Offset is how far the server's clock is ahead, and by how much that may be
	// wrong, once there was a reply.
	Offset func() (offset, within time.Duration, known bool)
}

// run is one look at a target.
type run struct {
	Target
	Report
	lock      *gcslock.Lock
	url       string // the bucket's
	probes    *probes
	attrs     *storage.BucketAttrs // nil: they can't be read
	readError error                // of the lock object, where a permission was missing
}

// Run looks at the target. Its error means that there is no verdict: the storage
// or the bucket is out of reach, or ctx has ended. The probe objects are removed
// in any case, on a context of its own, and the report names those that could not
// be. On a bucket that is fit it makes 72 requests, see docs/check.md.
func Run(ctx context.Context, target Target) (*Report, error) {
	lock, err := gcslock.New(target.Bucket, target.Object)
	if err != nil {
		return new(Report), err
	}
	r := &run{
		Target: target, lock: lock,
		url:    strings.TrimSuffix(inside.URL(target.Bucket.BucketName(), ""), "/"),
		probes: newProbes(target.Bucket, target.Object),
	}
	err = r.look(ctx)
	r.Left = r.probes.clean(context.WithoutCancel(ctx))
	for _, left := range r.Left {
		r.add(Finding{
			Name: "left behind", State: Warn, Seen: left,
			Why: "a probe object that this check made and could not remove",
			Fix: []string{"gcloud storage rm " + shellWord(left)},
		})
	}
	return &r.Report, err
}

func (r *run) look(ctx context.Context) error {
	if err := r.holder(ctx); err != nil {
		return err
	}
	complete, err := r.settings(ctx)
	if err != nil {
		return err
	}
	able := complete && r.permissions(ctx)
	if !complete {
		r.untried(ctx)
	}
	r.listing(ctx)
	if able {
		r.preconditions(ctx)
		r.latencies(ctx)
	} else if ctx.Err() == nil {
		r.unmeasured()
	}
	r.clock()
	return ctx.Err()
}

// holder reads the lock object. Whatever else is wrong here is no finding: no
// other request would get further.
func (r *run) holder(ctx context.Context) error {
	info, err := r.lock.Inspect(ctx)
	switch {
	case err == nil:
		r.Holder, r.Readable = info, true
	case errors.Is(err, gcslock.ErrNotHeld):
		r.Readable = true
	case statusOf(err) == http.StatusForbidden:
		r.readError = err
	default:
		return err
	}
	return nil
}

// settings reads the bucket's settings. It reports whether probe objects could
// be deleted again, as far as the settings tell.
func (r *run) settings(ctx context.Context) (deletable bool, err error) {
	_, err = ask(ctx, func(ctx context.Context) (err error) {
		r.attrs, err = r.Bucket.Retryer(storage.WithPolicy(storage.RetryNever)).Attrs(ctx)
		return err
	})
	switch {
	case errors.Is(err, storage.ErrBucketNotExist):
		return false, fmt.Errorf("%s: the bucket does not exist: check its name, or create it", r.url)
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		r.attrs = nil
		r.add(Finding{
			Name: "settings", State: Unknown,
			Seen: "the bucket's settings can't be read: " + inside.Summary(err),
			Why:  "needs storage.buckets.get; without it retention and holds show only where a delete is tried, and the others not at all",
			Fix:  []string{r.grant("roles/storage.legacyBucketReader")},
		})
		return true, nil
	}
	findings := judge(r.url, r.Object, r.attrs, time.Now())
	r.add(findings...)
	r.public(ctx)
	return r.attrs.RetentionPolicy == nil && !r.attrs.DefaultEventBasedHold, nil
}

// listing is for gcslock list, and for what an absent object is answered with.
func (r *run) listing(ctx context.Context) {
	_, err := ask(ctx, func(ctx context.Context) error {
		objects := r.Bucket.Retryer(storage.WithPolicy(storage.RetryNever)).Objects(ctx, &storage.Query{Prefix: r.Object})
		objects.PageInfo().MaxSize = 1
		if _, err := objects.Next(); err != nil && !errors.Is(err, iterator.Done) {
			return err
		}
		return nil
	})
	f := Finding{Name: "objects.list", State: OK, Seen: "objects can be listed"}
	switch {
	case r.probes.hidden != nil:
		f.State, f.Seen = Fail, "a read of an object that is not there was answered with "+inside.Summary(r.probes.hidden)
		f.Why = "a free lock can't be told from a missing permission; Cloud Storage says 404 to those who have storage.objects.list"
	case err != nil:
		f.State, f.Seen = Warn, inside.Summary(err)
		f.Why = "gcslock list needs storage.objects.list; the lock itself does not"
	}
	if f.State != OK {
		f.Fix = []string{r.grant("roles/storage.objectUser")}
	}
	r.add(f)
}

// preconditions has another object pass through all that the protocol needs.
func (r *run) preconditions(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	f := Finding{Name: "preconditions", State: OK, Seen: "enforced on create, update and delete"}
	err := gcstest.SelfCheck(ctx, r.Bucket, r.probes.prefix)
	var ignored *gcstest.IgnoredError
	switch {
	case errors.As(err, &ignored):
		f.State, f.Seen = Fail, "ignored: "+inside.Printable(strings.Join(ignored.Ignored, "; "))
		f.Why = "this endpoint is not Cloud Storage and lets two holders in at once"
		f.Fix = []string{"gcslock emulator --bucket " + inside.Printable(r.Bucket.BucketName())}
	case err != nil:
		// With its words for an object that it could not remove.
		f.State, f.Seen = Fail, inside.Printable(strings.ReplaceAll(err.Error(), "\n", "; "))
		f.Why = "a request failed that had worked before"
	}
	if err != nil {
		r.probes.sweep = true
	}
	r.add(f)
}

// unmeasured are the findings that need all four permissions.
func (r *run) unmeasured() {
	for _, name := range []string{"preconditions", "latency"} {
		r.add(Finding{Name: name, State: Unknown, Seen: "not tried before what is marked FAIL is mended"})
	}
}

// clockAllowance is how far a clock may be off before it misleads. Clients of
// the older format add as much to an expiry.
const clockAllowance = 10 * time.Second

func (r *run) clock() {
	offset, within, known := r.Offset()
	if !known {
		r.add(Finding{Name: "clock", State: Unknown, Seen: "no reply told the server's time"})
		return
	}
	f := Finding{Name: "clock", State: OK, Seen: "this machine's clock agrees with the server's, to about a second"}
	direction := "behind"
	if offset < 0 {
		offset, direction = -offset, "ahead of"
	}
	if offset-within > time.Second {
		f.Seen = fmt.Sprintf("this machine's clock is %v %s the server's", offset.Round(time.Second), direction)
	}
	if offset-within > clockAllowance {
		f.State = Warn
		f.Why = "gcslock does not mind, but the times that it shows mislead, and clients of the older format may take a live lock or wait for ever"
		f.Fix = []string{"timedatectl set-ntp true"}
	}
	r.add(f)
}

// grant is the command that gives the caller a role on the bucket.
func (r *run) grant(role string) string {
	return fmt.Sprintf("gcloud storage buckets add-iam-policy-binding %s --member=%s --role=%s", r.url, Member, role)
}

// shellWord is text as one word of a shell command.
func shellWord(text string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/:._-", c)
	}
	if strings.IndexFunc(text, func(c rune) bool { return !plain(c) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// statusOf is the HTTP status that an error stands for; 0 if none.
func statusOf(err error) int {
	var api *googleapi.Error
	if errors.As(err, &api) {
		return api.Code
	}
	return 0
}
