package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/internal/inside"
)

// lifecycle looks for rules that can meet a lock while it is held. Their age is
// that of the object since its creation, which a refresh does not renew
// (https://cloud.google.com/storage/docs/lifecycle).
func lifecycle(bucket, object string, attrs *storage.BucketAttrs, now time.Time) Finding {
	f := Finding{Name: "lifecycle", State: OK, Seen: "no rule meets the lock object"}
	var met []string
	for _, rule := range attrs.Lifecycle.Rules {
		when, meets := meetsLive(rule.Condition, object, attrs.StorageClass, now)
		switch {
		case !meets:
		case rule.Action.Type == storage.DeleteAction:
			f.State = Fail
			met = append(met, "deletes "+when)
		case rule.Action.Type == storage.SetStorageClassAction:
			if f.State == OK {
				f.State = Warn
			}
			met = append(met, fmt.Sprintf("moves to %s %s", inside.Printable(rule.Action.StorageClass), when))
		}
	}
	if len(met) == 0 {
		return f
	}
	f.Seen = "a rule " + strings.Join(met, "; another ")
	f.Why = "a lock that is held so long moves to a class with dearer requests and a least time that is billed"
	if f.State == Fail {
		f.Why = "a lock that is held so long is deleted under its holder, and the next one gets in: the age counts from the creation, and refreshes do not renew it"
	}
	f.Fix = []string{
		"gcloud storage buckets describe " + bucket + ` --format="json(lifecycle_config)"`,
		change(bucket, "--lifecycle-file=FILE") + "   # FILE: the rules without this one, or with a matchesPrefix beside the lock's",
	}
	return f
}

// meetsLive tells whether the conditions, all of them, can hold for a live object
// of that name, and from when on. The storage client does not show a condition
// that is 0, but for the age: such a rule, rare as it is, is taken for one without
// it.
func meetsLive(c storage.LifecycleCondition, object, class string, now time.Time) (when string, meets bool) {
	starts := func(prefix string) bool { return strings.HasPrefix(object, prefix) }
	ends := func(suffix string) bool { return strings.HasSuffix(object, suffix) }
	switch {
	case len(c.MatchesPrefix) > 0 && !slices.ContainsFunc(c.MatchesPrefix, starts),
		len(c.MatchesSuffix) > 0 && !slices.ContainsFunc(c.MatchesSuffix, ends),
		len(c.MatchesStorageClasses) > 0 && !slices.Contains(c.MatchesStorageClasses, class):
		return "", false
	case c.Liveness == storage.Archived, c.NumNewerVersions > 0,
		c.DaysSinceNoncurrentTime > 0, !c.NoncurrentTimeBefore.IsZero():
		return "", false // of noncurrent versions only
	case c.DaysSinceCustomTime > 0, !c.CustomTimeBefore.IsZero():
		return "", false // lock objects have no custom time
	case !c.CreatedBefore.IsZero() && !c.CreatedBefore.After(now):
		return "", false // a lock that is taken from now on is younger
	case c.AgeInDays > 0:
		return "it after " + days(time.Duration(c.AgeInDays)*24*time.Hour), true
	case !c.CreatedBefore.IsZero():
		return "it until " + c.CreatedBefore.Format(time.DateOnly), true
	}
	return "it at any age", true
}
