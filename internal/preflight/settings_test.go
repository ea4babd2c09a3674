package preflight

import (
	"testing"
)

type dict = map[string]any

// TestSettings through the storage client, as Cloud Storage sends them.
func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		settings dict
		name     string
		state    State
		says     []string
	}{
		{dict{"retentionPolicy": dict{"retentionPeriod": "604800", "effectiveTime": "2026-01-01T00:00:00Z"}},
			"retention policy", Fail, []string{"7 days", "gcloud storage buckets update gs://jobs --clear-retention-period"}},
		{dict{"retentionPolicy": dict{"retentionPeriod": "86400", "effectiveTime": "2026-01-01T00:00:00Z", "isLocked": true}},
			"retention policy", Fail, []string{"1 day, and the policy is locked for good", "gcloud storage buckets create gs://ANOTHER"}},
		{dict{"defaultEventBasedHold": true},
			"default hold", Fail, []string{"gcloud storage buckets update gs://jobs --no-default-event-based-hold"}},
		{dict{"softDeletePolicy": dict{"retentionDurationSeconds": "604800", "effectiveTime": "2026-01-01T00:00:00Z"}},
			"soft delete", Warn, []string{"7 days", "$0.004 per million", "gcloud storage buckets update gs://jobs --clear-soft-delete"}},
		{dict{"softDeletePolicy": dict{"retentionDurationSeconds": "0"}}, "soft delete", OK, nil},
		{dict{"storageClass": "NEARLINE"},
			"storage class", Warn, []string{"30 days", "gcloud storage buckets update gs://jobs --default-storage-class=STANDARD"}},
		{dict{"storageClass": "ARCHIVE"}, "storage class", Warn, []string{"365 days"}},
		{dict{"billing": dict{"requesterPays": true}},
			"requester pays", Warn, []string{"gcloud storage buckets update gs://jobs --no-requester-pays"}},
		{dict{"encryption": dict{"defaultKmsKeyName": "projects/p/key"}}, "encryption key", OK, []string{"projects/p/key"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.settings = tt.settings
				w.want(w.run(), tt.name, tt.state, tt.says...)
			})
		})
	}
}

// TestLifecycle: which rules can meet a lock that is held.
func TestLifecycle(t *testing.T) {
	toDelete, toNearline := dict{"type": "Delete"}, dict{"type": "SetStorageClass", "storageClass": "NEARLINE"}
	for _, tt := range []struct {
		name      string
		action    dict
		condition dict
		state     State
		says      string
	}{
		{"age", toDelete, dict{"age": 1}, Fail, "a rule deletes it after 1 day"},
		{"all", toDelete, dict{"age": 0}, Fail, "deletes it at any age"},
		{"prefix", toDelete, dict{"age": 30, "matchesPrefix": []string{"tmp/", "nightly/"}}, Fail, "after 30 days"},
		{"other prefix", toDelete, dict{"age": 30, "matchesPrefix": []string{"tmp/"}}, OK, ""},
		{"suffix", toDelete, dict{"age": 30, "matchesSuffix": []string{"lock"}}, Fail, "after 30 days"},
		{"other suffix", toDelete, dict{"age": 30, "matchesSuffix": []string{".log"}}, OK, ""},
		{"class", toDelete, dict{"age": 30, "matchesStorageClass": []string{"STANDARD"}}, Fail, "after 30 days"},
		{"other class", toDelete, dict{"age": 30, "matchesStorageClass": []string{"ARCHIVE"}}, OK, ""},
		{"noncurrent", toDelete, dict{"age": 30, "isLive": false}, OK, ""},
		{"live", toDelete, dict{"age": 30, "isLive": true}, Fail, "after 30 days"},
		{"newer versions", toDelete, dict{"numNewerVersions": 3}, OK, ""},
		{"days noncurrent", toDelete, dict{"daysSinceNoncurrentTime": 3}, OK, ""},
		{"noncurrent before", toDelete, dict{"noncurrentTimeBefore": "2026-01-01"}, OK, ""},
		{"custom time", toDelete, dict{"daysSinceCustomTime": 3}, OK, ""},
		{"custom time before", toDelete, dict{"customTimeBefore": "2026-01-01"}, OK, ""},
		{"created long ago", toDelete, dict{"createdBefore": "1999-12-31"}, OK, ""},
		{"created until", toDelete, dict{"createdBefore": "2100-01-01"}, Fail, "until 2100-01-01"},
		{"moved", toNearline, dict{"age": 30}, Warn, "moves to NEARLINE it after 30 days"},
		{"uploads", dict{"type": "AbortIncompleteMultipartUpload"}, dict{"age": 1}, OK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.settings["lifecycle"] = dict{"rule": []dict{{"action": tt.action, "condition": tt.condition}}}
				says := []string{tt.says}
				if tt.state != OK {
					says = append(says, "gcloud storage buckets update gs://jobs --lifecycle-file=FILE")
				}
				w.want(w.run(), "lifecycle", tt.state, says...)
			})
		})
	}
}

// TestPublicAccess by the bucket's policy, where it is not prevented.
func TestPublicAccess(t *testing.T) {
	const prevent = "gcloud storage buckets update gs://jobs --public-access-prevention"
	binding := func(role, member string) string {
		return `{"bindings":[{"role":"roles/storage.admin","members":["user:a@example.com"]},{"role":"` + role + `","members":["` + member + `"]}]}`
	}
	for _, tt := range []struct {
		name, policy string
		settings     dict
		state        State
		says         []string
	}{
		{"prevented", "", dict{"iamConfiguration": dict{"publicAccessPrevention": "enforced"}}, OK, []string{"prevented"}},
		{"stand-in", "", nil, OK, []string{"no IAM policies"}},
		{"not granted", binding("roles/storage.objectUser", "user:b@example.com"), nil, OK, []string{"not granted"}},
		{"readers", binding("roles/storage.objectViewer", "allUsers"), nil, Warn, []string{"roles/storage.objectViewer", prevent}},
		{"any account", binding("roles/storage.objectViewer", "allAuthenticatedUsers"), nil, Warn, []string{prevent}},
		{"writers", binding("roles/storage.objectUser", "allUsers"), nil, Fail, []string{"roles/storage.objectUser", prevent}},
		{"readers of objects", `{}`, dict{"defaultObjectAcl": []dict{{"entity": "allUsers", "role": "READER"}}}, Warn, []string{prevent}},
		{"owners of objects", `{}`, dict{"defaultObjectAcl": []dict{{"entity": "allUsers", "role": "OWNER"}}}, Fail, []string{prevent}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.policy, w.settings = tt.policy, tt.settings
				w.want(w.run(), "public access", tt.state, tt.says...)
			})
		})
	}
}
