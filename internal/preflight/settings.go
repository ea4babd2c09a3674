package preflight

import (
	"fmt"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/internal/inside"
)

// The commands of https://cloud.google.com/sdk/gcloud/reference/storage/buckets/update.

func change(bucket, flag string) string {
	return "gcloud storage buckets update " + bucket + " " + flag
}

func clearRetention(bucket string) string { return change(bucket, "--clear-retention-period") }
func clearHold(bucket string) string      { return change(bucket, "--no-default-event-based-hold") }

// judge tells what the bucket's settings mean for a lock object of that name.
func judge(bucket, object string, attrs *storage.BucketAttrs, now time.Time) []Finding {
	findings := []Finding{
		retention(bucket, attrs.RetentionPolicy),
		hold(bucket, attrs.DefaultEventBasedHold),
		versioning(bucket, attrs.VersioningEnabled),
		softDelete(bucket, attrs.SoftDeletePolicy),
		lifecycle(bucket, object, attrs, now),
		storageClass(bucket, attrs.StorageClass),
		requesterPays(bucket, attrs.RequesterPays),
	}
	if e := attrs.Encryption; e != nil && e.DefaultKMSKeyName != "" {
		findings = append(findings, Finding{
			Name: "encryption key", State: OK,
			Seen: "customer-managed, " + inside.Printable(e.DefaultKMSKeyName) + ": while it is disabled, nobody can lock",
		})
	}
	return findings
}

func retention(bucket string, policy *storage.RetentionPolicy) Finding {
	f := Finding{Name: "retention policy", State: OK, Seen: "none"}
	if policy == nil {
		return f
	}
	f.State = Fail
	f.Seen = fmt.Sprintf("objects can't be deleted for %v", days(policy.RetentionPeriod))
	f.Why = "a lock could not be released, nor a dead holder's be taken over"
	f.Fix = []string{clearRetention(bucket)}
	if policy.IsLocked {
		f.Seen += ", and the policy is locked for good"
		f.Why += "; use another bucket for locks"
		f.Fix = []string{"gcloud storage buckets create gs://ANOTHER --soft-delete-duration=0"}
	}
	return f
}

func hold(bucket string, on bool) Finding {
	if !on {
		return Finding{Name: "default hold", State: OK, Seen: "none"}
	}
	return Finding{
		Name: "default hold", State: Fail, Seen: "each new object gets an event-based hold",
		Why: "a lock could not be released, nor a dead holder's be taken over",
		Fix: []string{clearHold(bucket)},
	}
}

func versioning(bucket string, on bool) Finding {
	if !on {
		return Finding{Name: "versioning", State: OK, Seen: "off"}
	}
	return Finding{
		Name: "versioning", State: Warn, Seen: "on",
		Why: "gcslock deletes without a trace, but each lock object that a person or another tool deletes stays as a noncurrent version, and is billed",
		Fix: []string{change(bucket, "--no-versioning")},
	}
}

// softDelete has the price of Standard storage in one region, $0.020 a GiB and
// month (https://cloud.google.com/storage/pricing), for objects of 1 KiB, which
// is about what a lock's metadata take.
func softDelete(bucket string, policy *storage.SoftDeletePolicy) Finding {
	if policy == nil || policy.RetentionDuration <= 0 {
		return Finding{Name: "soft delete", State: OK, Seen: "off"}
	}
	const perMillionDays = 1e6 / (1 << 20) * 0.020 / 30
	cost := perMillionDays * policy.RetentionDuration.Hours() / 24
	return Finding{
		Name: "soft delete", State: Warn,
		Seen: fmt.Sprintf("deleted objects are kept for %v", days(policy.RetentionDuration)),
		Why: fmt.Sprintf("each lock that was released, and each probe of this check, stays unseen and is billed for as long: about $%.3f per million without a payload",
			cost),
		Fix: []string{change(bucket, "--clear-soft-delete")},
	}
}

// minimum is for how long each object is billed at least, in days
// (https://cloud.google.com/storage/docs/storage-classes).
var minimum = map[string]int{"NEARLINE": 30, "COLDLINE": 90, "ARCHIVE": 365}

func storageClass(bucket, class string) Finding {
	f := Finding{Name: "storage class", State: OK, Seen: inside.Printable(class)}
	if class == "" {
		f.Seen = "not told"
	}
	if least, ok := minimum[class]; ok {
		f.State = Warn
		f.Why = fmt.Sprintf("each lock is billed for %d days at least, however soon it is released, and all its requests cost more than in Standard", least)
		f.Fix = []string{change(bucket, "--default-storage-class=STANDARD")}
	}
	return f
}

func requesterPays(bucket string, on bool) Finding {
	if !on {
		return Finding{Name: "requester pays", State: OK, Seen: "off"}
	}
	return Finding{
		Name: "requester pays", State: Warn, Seen: "on",
		Why: "gcslock names no project to bill: only identities of the bucket's own project, with the right to bill it, get in",
		Fix: []string{change(bucket, "--no-requester-pays")},
	}
}

// days is a duration that people read.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "1 day"
	case d > 0 && d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
