package preflight

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"cloud.google.com/go/iam"
	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/internal/inside"
)

// public tells whether the whole world can read the lock, or take it away.
func (r *run) public(ctx context.Context) {
	f := Finding{Name: "public access", State: OK, Seen: "prevented"}
	if r.attrs.PublicAccessPrevention == storage.PublicAccessPreventionEnforced {
		r.add(f)
		return
	}
	prevent := []string{change(r.url, "--public-access-prevention")}
	var policy *iam.Policy3
	_, err := ask(ctx, func(ctx context.Context) (err error) {
		policy, err = r.Bucket.Retryer(storage.WithPolicy(storage.RetryNever)).IAM().V3().Policy(ctx)
		return err
	})
	switch status := statusOf(err); {
	case ctx.Err() != nil:
		return
	case status == http.StatusNotFound, status == http.StatusNotImplemented:
		// Cloud Storage has a policy for each bucket.
		f.Seen = "this endpoint has no IAM policies, it is a stand-in"
	case err != nil:
		f.State, f.Seen, f.Fix = Unknown, "the bucket's policy can't be read: "+inside.Summary(err), prevent
		f.Why = "needs storage.buckets.getIamPolicy; preventing public access settles it"
	default:
		f.State, f.Seen, f.Why = exposed(policy, r.attrs.DefaultObjectACL)
		if f.State != OK {
			f.Fix = prevent
		}
	}
	r.add(f)
}

// harmless are the roles of the public that let it do no more than read.
var harmless = []string{
	"roles/storage.objectViewer", "roles/storage.legacyObjectReader",
	"roles/storage.legacyBucketReader", "roles/storage.bucketViewer",
}

// exposed looks for the two principals that are everybody, in the bucket's own
// policy; what a project or folder above it grants is not in there.
func exposed(policy *iam.Policy3, acl []storage.ACLRule) (state State, seen, why string) {
	state, seen = OK, "not granted by the bucket's policy"
	for _, b := range policy.Bindings {
		public := slices.ContainsFunc(b.GetMembers(), func(member string) bool {
			return member == "allUsers" || member == "allAuthenticatedUsers"
		})
		switch {
		case !public:
		case !slices.Contains(harmless, b.GetRole()):
			return Fail, "everybody has " + inside.Printable(b.GetRole()),
				"anybody may be able to delete a lock that is held, or to take it for ever"
		case state == OK:
			state, seen = Warn, "everybody has "+inside.Printable(b.GetRole())
			why = "anybody can read who holds the lock, on which host and for what"
		}
	}
	for _, rule := range acl {
		if rule.Entity == storage.AllUsers || rule.Entity == storage.AllAuthenticatedUsers {
			if strings.EqualFold(string(rule.Role), string(storage.RoleOwner)) {
				return Fail, "everybody owns each new object", "anybody can change a lock that is held"
			}
			state, seen, why = Warn, "everybody can read each new object", "anybody can read who holds the lock, on which host and for what"
		}
	}
	return state, seen, why
}
