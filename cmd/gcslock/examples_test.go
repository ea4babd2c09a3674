//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// examples is where they are, for processes in other directories, too.
func examples(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// decode refuses what the form does not have.
func decode(t *testing.T, file string, form any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples(t), file))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(form); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The parts of https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax
// that the example uses.
type workflow struct {
	Name string
	On   struct {
		Schedule []struct{ Cron string }
		Dispatch any `yaml:"workflow_dispatch"`
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		RunsOn  string `yaml:"runs-on"`
		Timeout int    `yaml:"timeout-minutes"`
		Steps   []step
	}
}

type step struct {
	Name, Uses, Shell, Run string
	With                   map[string]string
}

// The parts of https://cloud.google.com/build/docs/build-config-file-schema that the
// example uses.
type build struct {
	Steps []struct {
		ID, Name, Entrypoint string
		Args, Env            []string
	}
	Timeout        string
	ServiceAccount string `yaml:"serviceAccount"`
	Options        struct{ Logging string }
}

// installed is how the examples get the command.
const installed = "go install github.com/gcslock/gcslock/cmd/gcslock@latest"

// gcslockLines are the workflow's steps that run gcslock. The others can't run
// here; that they install it is looked at.
func gcslockLines(t *testing.T) (lines []string) {
	t.Helper()
	var w workflow
	decode(t, "github-actions/nightly.yaml", &w)
	if w.Permissions["id-token"] != "write" {
		t.Errorf("permissions %v", w.Permissions)
	}
	installs, identity := false, false
	for _, step := range w.Jobs["import"].Steps {
		switch {
		case step.Run == installed:
			installs = true
		case step.Run != "":
			lines = append(lines, step.Run)
		case strings.HasPrefix(step.Uses, "google-github-actions/auth@"):
			identity = step.With["workload_identity_provider"] != ""
		}
	}
	if len(lines) != 2 || !installs || !identity {
		t.Fatalf("%+v", w)
	}
	return lines
}

// example is a process of an example's, with gcslock and the programs on its path,
// in a directory with the job.
func (s *site) example(programs, job string, argv ...string) *exec.Cmd {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	bin := s.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "gcslock")); err != nil {
		s.Fatal(err)
	}
	cmd := s.command()
	cmd.Dir = s.TempDir()
	if job != "" {
		if err := os.WriteFile(filepath.Join(cmd.Dir, "import.sh"), []byte("#!/bin/sh\n"+job), 0o700); err != nil {
			s.Fatal(err)
		}
	}
	path := bin + ":" + programs + ":" + os.Getenv("PATH")
	cmd.Args = argv
	if cmd.Path = filepath.Join(bin, "gcslock"); argv[0] != "gcslock" {
		if cmd.Path, err = exec.LookPath(argv[0]); err != nil {
			s.Fatal(err)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+path, "GITHUB_REPOSITORY=owner/repo", "GITHUB_RUN_ID=7", "GITHUB_WORKFLOW=nightly import")
	return cmd
}

// wantRan fails unless the job ran under the lock, with this owner, and the lock
// was released.
func (s *site) wantRan(cmd *exec.Cmd, owner string) {
	s.Helper()
	output, err := cmd.CombinedOutput()
	if code := s.code(err); code != 0 || !bytes.Contains(output, []byte("importing, with token ")) {
		s.Errorf("%q: exit code %d: %s", cmd.Args, code, output)
	}
	if ops := s.ops(); ops != "create delete" {
		s.Errorf("requests %q", ops)
	}
	created := s.server.Requests()[0]
	if created.Object != "nightly/lock" || !bytes.Contains(created.Body, []byte(`"owner":"`+owner+`"`)) {
		s.Errorf("created %s with %s, want owner %s", created.Object, created.Body, owner)
	}
}

// wantFit fails unless the command is a check that is content.
func (s *site) wantFit(cmd *exec.Cmd) {
	s.Helper()
	output, err := cmd.CombinedOutput()
	if code := s.code(err); code != 0 || !bytes.Contains(output, []byte("gs://jobs/nightly/lock can be relied on")) {
		s.Errorf("%q: exit code %d: %s", cmd.Args, code, output)
	}
}

const job = `echo "importing, with token $GCSLOCK_TOKEN"`

// step is a step's process, as a runner starts it where the shell is bash: from a
// file. With -c bash would make way for gcslock by itself.
func (s *site) step(line, job string) *exec.Cmd {
	s.Helper()
	script := filepath.Join(s.TempDir(), "script")
	if err := os.WriteFile(script, []byte(line), 0o600); err != nil {
		s.Fatal(err)
	}
	return s.example("", job, "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
}

func TestGitHubActionsExample(t *testing.T) {
	lines := gcslockLines(t)
	s := newSite(t)
	s.wantFit(s.step(lines[0], job))
	s.server.ResetRequests()
	s.wantRan(s.step(lines[1], job), "owner/repo/7")
}

// TestGitHubActionsExampleCancelled: the runner signals the step's first process,
// and the lock is free before it kills anything.
func TestGitHubActionsExampleCancelled(t *testing.T) {
	lines := gcslockLines(t)
	s := newSite(t)
	cmd := s.step(lines[1], `trap "echo told; exit 3" INT; echo ready; while :; do sleep 0.02; done`)
	// A step that stays deaf is killed in the end, and gcslock, in its group, too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{site: s, cmd: cmd}
	p.stdout = s.pipe(&cmd.Stdout)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout.(*os.File).Close()
	deaf := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer deaf.Stop()
	p.stdout.until("ready")
	p.signal(syscall.SIGINT)
	p.stdout.until("told")
	if code := p.wait(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if _, held := s.server.Object("jobs", "nightly/lock"); held {
		t.Error("the lock was not released")
	}
}

func TestCloudBuildExample(t *testing.T) {
	var b build
	decode(t, "cloudbuild/cloudbuild.yaml", &b)
	if got := strings.Join(b.Steps[0].Args, " "); got != installed || !slices.Contains(b.Steps[0].Env, "GOBIN=/workspace/bin") {
		t.Errorf("installs by %s with %v", got, b.Steps[0].Env)
	}
	argv := func(i int) []string {
		if b.Steps[i].Entrypoint != "/workspace/bin/gcslock" {
			t.Errorf("step %d is %+v", i, b.Steps[i])
		}
		args := []string{"gcslock"}
		for _, arg := range b.Steps[i].Args {
			args = append(args, strings.ReplaceAll(arg, "$BUILD_ID", "b-7"))
		}
		return args
	}
	s := newSite(t)
	s.wantFit(s.example("", job, argv(1)...))
	s.server.ResetRequests()
	s.wantRan(s.example("", job, argv(2)...), "build/b-7")
}

// TestKubernetesExample: the manifests' containers. Their form is checked against
// Kubernetes' own types in the example's module.
func TestKubernetesExample(t *testing.T) {
	dir := filepath.Join(examples(t), "kubernetes")
	container := func(file string, document int, path ...string) []string {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var node map[string]any
		if err := yaml.Unmarshal([]byte(strings.Split(string(text), "\n---\n")[document]), &node); err != nil {
			t.Fatal(err)
		}
		for _, key := range path {
			node = node[key].(map[string]any)
		}
		var argv []string
		for _, arg := range node["containers"].([]any)[0].(map[string]any)["command"].([]any) {
			argv = append(argv, strings.ReplaceAll(arg.(string), "$(POD_NAME)", "pod-7"))
		}
		return argv
	}
	s := newSite(t)
	s.wantFit(s.example("", "", container("check.yaml", 0, "spec", "template", "spec")...))
	s.server.ResetRequests()
	s.wantRan(s.example(dir, "", container("cronjob.yaml", 1, "spec", "jobTemplate", "spec", "template", "spec")...), "pod-7")
}

// recorder stands in for programs that would reach out: it notes how it was called.
const recorder = `#!/bin/sh
echo "${0##*/} $*" >> "$RECORD"
case "$*" in *projectNumber*) echo 123 ;; esac
`

// TestExampleSetups: each README's commands, with the programs replaced, end in
// bindings for the identity that the example runs as.
func TestExampleSetups(t *testing.T) {
	for name, member := range map[string]string{
		"kubernetes":     "principal://iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/my-project.svc.id.goog/subject/ns/jobs/sa/importer",
		"github-actions": "principalSet://iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/github/attribute.repository/OWNER/REPO",
		"cloudbuild":     "serviceAccount:importer@my-project.iam.gserviceaccount.com",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			programs, record := t.TempDir(), filepath.Join(t.TempDir(), "record")
			for _, program := range []string{"gcloud", "kubectl", "docker"} {
				if err := os.WriteFile(filepath.Join(programs, program), []byte(recorder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			dir := filepath.Join(examples(t), name)
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			var script []string
			for _, line := range regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(string(readme), -1) {
				script = append(script, line[1])
			}
			cmd := s.example(programs, "", "sh", "-euc", strings.Join(script, "\n"))
			cmd.Dir, cmd.Env = dir, append(cmd.Env, "RECORD="+record)
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			calls, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"gcloud storage buckets create gs://jobs --project=my-project --location=europe-west1 --default-storage-class=STANDARD" +
					" --soft-delete-duration=0 --uniform-bucket-level-access --public-access-prevention\n",
				"gcloud storage buckets add-iam-policy-binding gs://jobs --member=" + member + " --role=roles/storage.objectUser\n",
				"gcloud storage buckets add-iam-policy-binding gs://jobs --member=" + member + " --role=roles/storage.legacyBucketReader\n",
			} {
				if !strings.Contains(string(calls), want) {
					t.Errorf("no call %q in:\n%s", want, calls)
				}
			}
		})
	}
}
