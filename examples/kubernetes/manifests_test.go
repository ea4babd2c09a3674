package kubernetes

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// read decodes a file's documents into Kubernetes' own types, which refuses
// unknown, repeated and ill-typed fields.
func read(t *testing.T, file string, documents ...any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := bytes.Split(text, []byte("\n---\n"))
	if len(parts) != len(documents) {
		t.Fatalf("%s has %d documents, want %d", file, len(parts), len(documents))
	}
	for i, part := range parts {
		if err := yaml.UnmarshalStrict(part, documents[i]); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestCronJob: the identity is the one that it names, and nothing keeps the
// signal from gcslock or the time from the job.
func TestCronJob(t *testing.T) {
	var account core.ServiceAccount
	var job batch.CronJob
	read(t, "cronjob.yaml", &account, &job)
	if account.Kind != "ServiceAccount" || job.Kind != "CronJob" || job.APIVersion != batch.SchemeGroupVersion.String() {
		t.Errorf("kinds %s, %s of %s", account.Kind, job.Kind, job.APIVersion)
	}
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	if pod.ServiceAccountName != account.Name || job.Namespace != account.Namespace {
		t.Errorf("runs as %s in %s, the account is %s in %s", pod.ServiceAccountName, job.Namespace, account.Name, account.Namespace)
	}
	if job.Spec.ConcurrencyPolicy != batch.ForbidConcurrent || pod.RestartPolicy != core.RestartPolicyNever || *job.Spec.JobTemplate.Spec.BackoffLimit != 0 {
		t.Errorf("%+v", job.Spec)
	}
	// The release's limit is 15 s.
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < time.Minute+15*time.Second {
		t.Errorf("the job has %v to stop", grace-15*time.Second)
	}
	command := pod.Containers[0].Command
	if command[0] != "gcslock" || pod.Containers[0].Args != nil {
		t.Errorf("gcslock is not the first process: %q", command)
	}
	if !slices.Contains(command, "--owner=$(POD_NAME)") || pod.Containers[0].Env[0].Name != "POD_NAME" {
		t.Errorf("the owner is not the pod: %q, %+v", command, pod.Containers[0].Env)
	}
}

// TestCheckJob looks with the same identity and image at the same lock.
func TestCheckJob(t *testing.T) {
	var cron batch.CronJob
	var job batch.Job
	read(t, "cronjob.yaml", new(core.ServiceAccount), &cron)
	read(t, "check.yaml", &job)
	runs, looks := cron.Spec.JobTemplate.Spec.Template.Spec, job.Spec.Template.Spec
	if looks.ServiceAccountName != runs.ServiceAccountName || job.Namespace != cron.Namespace || looks.Containers[0].Image != runs.Containers[0].Image {
		t.Errorf("looks as %+v, runs as %+v", looks, runs)
	}
	lock := looks.Containers[0].Command[2]
	if !slices.Contains(runs.Containers[0].Command, lock) {
		t.Errorf("looks at %s, runs %q", lock, runs.Containers[0].Command)
	}
}
