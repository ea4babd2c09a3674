package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/api/googleapi"

	"github.com/gcslock/gcslock/internal/inside"
)

// The permissions that a lock needs (https://cloud.google.com/storage/docs/access-control/iam-json).
const (
	permCreate = "objects.create"
	permGet    = "objects.get"
	permUpdate = "objects.update"
	permDelete = "objects.delete"
)

// permissions tries all that a lock does, on one probe object, so that one at
// most is left where the delete is refused. It tells whether all was done.
func (r *run) permissions(ctx context.Context) bool {
	name := r.probes.next()
	_, attrs, err := r.probes.create(ctx, name)
	if !r.permission(ctx, permCreate, "a probe object was created", err) {
		r.reading(ctx)
		for _, perm := range []string{permUpdate, permDelete} {
			r.skip(ctx, perm, "not tried: no probe object could be created")
		}
		return false
	}
	r.caching(attrs.CacheControl)
	_, err = r.probes.read(ctx, name)
	able := r.permission(ctx, permGet, "a probe object was read", err)
	_, err = r.probes.update(ctx, name)
	able = r.permission(ctx, permUpdate, "its metadata were updated", err) && able
	_, err = r.probes.remove(ctx, name)
	if !r.permission(ctx, permDelete, "it was deleted again", err) {
		return false
	}
	if able {
		r.probes.lookForAbsent(ctx, name)
	}
	if r.readError != nil && able && r.probes.hidden == nil && ctx.Err() == nil {
		r.add(Finding{
			Name: "lock object", State: Fail, Seen: r.readError.Error(),
			Why: "objects beside it can be read: an IAM condition or an access control list is about this name",
			Fix: []string{r.grant("roles/storage.objectUser")},
		})
	}
	return able && r.probes.hidden == nil
}

// untried are the findings where a probe object would have to stay.
func (r *run) untried(ctx context.Context) {
	r.reading(ctx)
	for _, perm := range []string{permCreate, permUpdate, permDelete} {
		r.skip(ctx, perm, "not tried: a probe object could not be deleted again in this bucket")
	}
}

func (r *run) skip(ctx context.Context, perm, why string) {
	if ctx.Err() == nil {
		r.add(Finding{Name: perm, State: Unknown, Seen: why})
	}
}

// reading is what the look at the lock object tells.
func (r *run) reading(ctx context.Context) {
	r.permission(ctx, permGet, "the lock object can be read", r.readError)
}

// permission adds what came of the request that needs it.
func (r *run) permission(ctx context.Context, perm, seen string, err error) bool {
	if ctx.Err() != nil {
		return false // cut short, which is no finding
	}
	if err == nil {
		r.add(Finding{Name: perm, State: OK, Seen: seen})
		return true
	}
	f := Finding{Name: perm, State: Fail, Seen: inside.Summary(err), Why: "a request that a lock needs did not get through"}
	switch reason(err) {
	case "retentionPolicyNotMet":
		f.Why = "a lock could not be released, nor a dead holder's be taken over"
		f.Fix = []string{clearRetention(r.url)}
	case "objectUnderActiveHold":
		f.Why = "a lock could not be released, nor a dead holder's be taken over"
		f.Fix = []string{clearHold(r.url)}
	default:
		if statusOf(err) == http.StatusForbidden {
			f.Why = fmt.Sprintf("needs storage.%s", perm)
			f.Fix = []string{r.grant("roles/storage.objectUser")}
		}
	}
	r.add(f)
	return false
}

// caching is about lock objects that the public can read: they would be served
// from caches for an hour.
func (r *run) caching(control string) {
	f := Finding{Name: "caching", State: OK, Seen: "Cache-Control: no-store is kept, so that no cache serves an old lock"}
	if control != "no-store" {
		f.State = Warn
		f.Seen = fmt.Sprintf("Cache-Control: no-store became %q", inside.Printable(control))
		f.Why = "caches may serve a lock that is long gone to those who read it in public"
	}
	r.add(f)
}

// reason is the server's word for why it refused.
func reason(err error) string {
	var api *googleapi.Error
	if errors.As(err, &api) && len(api.Errors) > 0 {
		return api.Errors[0].Reason
	}
	return ""
}
