package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
	"github.com/gcslock/gcslock/gcstest"
)

const (
	stateTarget = "gs://jobs/team/app"
	stateLock   = "team/app/default.tflock"
	stateObject = "team/app/default.tfstate"
)

// fakeTerraform tells its version, and does whatever the test wants in FAKE.
const fakeTerraform = `#!/bin/sh
if [ "$1" = version ]; then
	[ -z "$TF_CLI_ARGS$TF_CLI_ARGS_version" ] && [ -n "$CHECKPOINT_DISABLE" ] && echo '{"terraform_version": "9.8.7"}'
	exit
fi
eval "$FAKE"
`

// newStateSite is a site with an initialised directory, an empty state, and a
// terraform that does what the script says.
func newStateSite(t *testing.T, script string) *site {
	s := newSite(t)
	s.addState(script)
	return s
}

// addState makes a state site of the site.
func (s *site) addState(script string) {
	s.Helper()
	directory := s.TempDir()
	program := filepath.Join(directory, "terraform")
	if err := os.WriteFile(program, []byte(fakeTerraform), 0o700); err != nil {
		s.Fatal(err)
	}
	s.server.Put("jobs", stateObject, gcstest.Object{})
	s.env = append(s.env, "PATH="+directory+string(os.PathListSeparator)+os.Getenv("PATH"), "FAKE="+script,
		"TF_WORKSPACE=", "TF_CLI_ARGS=", "TF_CLI_ARGS_apply=", "TF_CLI_ARGS_plan=", "TF_CLI_ARGS_version=")
	s.initialise(`{"bucket": "jobs", "prefix": "team/app"}`)
}

// initialise leaves a data directory, as init does.
func (s *site) initialise(config string) (directory string) {
	s.Helper()
	directory = s.TempDir()
	text := `{"version": 3, "backend": {"type": "gcs", "config": ` + config + `}}`
	if err := os.WriteFile(filepath.Join(directory, "terraform.tfstate"), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	s.env = append(s.env, "TF_DATA_DIR="+directory)
	return directory
}

func (s *site) stateLock() (gcstest.Object, bool) { return s.server.Object("jobs", stateLock) }

// TestTerraformRuns under the lock, in the workspace, without its own locking,
// and with what the user has set.
func TestTerraformRuns(t *testing.T) {
	s := newStateSite(t, `echo "$* / $TF_WORKSPACE / $TF_CLI_ARGS_apply / $TF_CLI_ARGS_plan / $GCSLOCK_TOKEN"; read line; exit 3`)
	s.env = append(s.env, "TF_CLI_ARGS_apply=-parallelism=2", "TF_CLI_ARGS=-no-color")
	p, release := s.startHeld("terraform", stateTarget, "--", "terraform", "apply", "-var", "password=secret")
	line := p.stdout.until("apply")
	obj, ok := s.stateLock()
	if want := fmt.Sprintf("apply -var password=secret / default / -parallelism=2 -lock=false /  / %d", obj.Generation); !ok || line != want {
		t.Errorf("terraform says %q, want %q", line, want)
	}
	release()
	if code := p.wait(); code != 3 {
		t.Errorf("exit code %d, want terraform's", code)
	}
	if _, ok := s.stateLock(); ok {
		t.Error("the lock was not released")
	}

	info, err := terraform.ParseLockInfo(obj.Content)
	if err != nil || !strings.HasPrefix(string(obj.Content), `{"ID":"`) {
		t.Fatalf("%v in %s", err, obj.Content)
	}
	u, _ := user.Current()
	host, _ := os.Hostname()
	if len(info.ID) != 36 || info.Operation != "OperationTypeApply" || info.Who != u.Username+"@"+host || info.Version != "9.8.7" ||
		time.Since(info.CreatedAt()) > time.Hour || info.Path != "gs://jobs/"+stateLock || !strings.Contains(info.Info, "frees itself 5m0s after a crash") {
		t.Errorf("lock information %+v", info)
	}
	if got := obj.Metadata; obj.ContentType != "application/json" || got["operation"] != "terraform apply" || got["ttl"] != "5m0s" {
		t.Errorf("type %q, metadata %q", obj.ContentType, got)
	}
	if strings.Contains(fmt.Sprint(obj.Metadata)+string(obj.Content), "secret") {
		t.Error("the lock tells the arguments")
	}
}

// TestTerraformWorkspace: by the flag, the environment, or the directory.
func TestTerraformWorkspace(t *testing.T) {
	for _, tt := range []struct{ name, flag, environment, selected, want string }{
		{"none", "", "", "", "default"},
		{"selected", "", "", "prod", "prod"},
		{"environment", "", "stage", "prod", "stage"},
		{"flag", "test", "", "prod", "test"},
		{"both", "stage", "stage", "prod", "stage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStateSite(t, `echo "$TF_WORKSPACE"`)
			file := filepath.Join(s.initialise(`{"bucket": "jobs", "prefix": "team/app"}`), "environment")
			if err := os.WriteFile(file, []byte(tt.selected), 0o600); err != nil {
				t.Fatal(err)
			}
			s.env = append(s.env, "TF_WORKSPACE="+tt.environment)
			s.server.Put("jobs", "team/app/"+tt.want+".tfstate", gcstest.Object{})
			args := []string{"terraform", stateTarget, "--", "terraform", "plan"}
			if tt.flag != "" {
				args = append([]string{"terraform", "--workspace", tt.flag}, args[1:]...)
			}
			code, stdout, stderr := s.run(args...)
			if code != 0 || stdout != tt.want+"\n" || !strings.Contains(stderr, "acquired gs://jobs/team/app/"+tt.want+".tflock,") {
				t.Errorf("exit code %d, workspace %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// TestTerraformUsageErrors are refused before any request, with one line. What
// the lock would not protect is one of them.
func TestTerraformUsageErrors(t *testing.T) {
	for _, tt := range []struct {
		args        string
		environment string
		says        string
	}{
		{"gs://jobs/team/app", "", "want gs://BUCKET/PREFIX -- terraform"},
		{"gs://jobs/team/app terraform apply", "", "want gs://BUCKET/PREFIX -- terraform"},
		{"-- terraform apply", "", "want gs://BUCKET/PREFIX -- terraform"},
		{"jobs/team -- terraform apply", "", `"jobs/team" does not name a bucket`},
		{"gs:// -- terraform apply", "", `"gs://" does not name a bucket`},
		{"--ttl 1s gs://jobs/team/app -- terraform apply", "", "ttl 1s is not from 3s"},
		{"--grace -1s gs://jobs/team/app -- terraform apply", "", "--grace -1s is negative"},
		{"--workspace= gs://jobs/team/app -- terraform apply", "", `"" is no name of a workspace`},
		{"--workspace a/b gs://jobs/team/app -- terraform show", "", `"a/b" is no name of a workspace`},
		{"--workspace a gs://jobs/team/app -- terraform apply", "TF_WORKSPACE=b", "--workspace a, but TF_WORKSPACE is b"},
		{"--workspace a gs://jobs/team/app -- terraform show", "TF_WORKSPACE=b", "--workspace a, but TF_WORKSPACE is b"},
		{"gs://jobs/team/app -- terraform apply", "TF_WORKSPACE=a/b", `"a/b" is no name of a workspace`},
		{"gs://jobs/team/app -- terraform apply -lock=true", "", "-lock=true can't be had"},
		{"gs://jobs/team/app -- terraform apply", "TF_CLI_ARGS=-lock", "-lock in TF_CLI_ARGS can't be had"},
		{"gs://jobs/team -- terraform apply", "", "the state is at gs://jobs/team/app, as "},
		{"gs://other/team/app -- terraform apply", "", "the state is at gs://jobs/team/app, as "},
		{"gs://jobs/team/app -- terraform apply", "TF_DATA_DIR=none", "run terraform init first"},
		{"gs://jobs/team/app -- terraform apply", "GOOGLE_STORAGE_CUSTOM_ENDPOINT=http://127.0.0.1:1/storage/v1/", "the lock would be somewhere else"},
		{"gs://jobs/team/app -- terraform apply", "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT=https://127.0.0.1/storage/v1/", "the lock would be somewhere else"},
	} {
		t.Run(tt.args+" "+tt.environment, func(t *testing.T) {
			s := newStateSite(t, "echo ran")
			s.env = append(s.env, tt.environment)
			code, stdout, stderr := s.run(append([]string{"terraform"}, strings.Fields(tt.args)...)...)
			if code != exitUsage || !strings.Contains(stderr, tt.says) || strings.Count(stderr, "\n") != 1 || stdout != "" {
				t.Errorf("exit code %d, stderr %q, stdout %q; want %d and one line with %q", code, stderr, stdout, exitUsage, tt.says)
			}
			if ops := s.ops(); ops != "" {
				t.Errorf("requests %q", ops)
			}
		})
	}
}

// TestTerraformPlan: a saved plan for another state is one of them, too.
func TestTerraformPlan(t *testing.T) {
	s := newStateSite(t, "echo ran")
	var plan bytes.Buffer
	archive := zip.NewWriter(&plan)
	w, err := archive.Create("tfplan")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, "\x6a\x04\x0a\x02s3") // field 13, the backend, whose field 1 is its type
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "saved")
	if err := os.WriteFile(name, plan.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := s.run("terraform", stateTarget, "--", "terraform", "apply", name)
	if code != exitUsage || !strings.Contains(stderr, `saved is for the backend "s3"`) || stdout != "" || s.ops() != "" {
		t.Errorf("exit code %d, stderr %q, stdout %q, requests %q", code, stderr, stdout, s.ops())
	}
}

// TestTerraformAsIs: what does not lock runs as if gcslock were not there.
func TestTerraformAsIs(t *testing.T) {
	for _, tt := range []struct{ flags, command, workspace string }{
		{"", "init -input=false", ""},
		{"", "output -json", ""},
		{"", "workspace select prod", ""},
		{"", "state list", ""},
		{"", "console", ""},
		{"", "force-unlock 17", ""},
		{"", "apply -help", ""},
		{"", "", ""},
		{"--workspace prod", "output", "prod"},
	} {
		t.Run(tt.flags+tt.command, func(t *testing.T) {
			s := newStateSite(t, `echo "$* / $TF_WORKSPACE / $TF_CLI_ARGS_apply$GCSLOCK_TOKEN"; exit 5`)
			s.env = append(s.env, "TF_DATA_DIR=none", "TF_WORKSPACE=")
			args := append(append([]string{"terraform"}, strings.Fields(tt.flags)...), stateTarget, "--", "terraform")
			code, stdout, stderr := s.run(append(args, strings.Fields(tt.command)...)...)
			if want := tt.command + " / " + tt.workspace + " / \n"; code != 5 || stdout != want || stderr != "" {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 5, %q", code, stdout, stderr, want)
			}
			if ops := s.ops(); ops != "" {
				t.Errorf("requests %q", ops)
			}
		})
	}
}

// TestTerraformNotFound: also where no lock is needed.
func TestTerraformNotFound(t *testing.T) {
	for _, command := range []string{"apply", "output"} {
		t.Run(command, func(t *testing.T) {
			s := newStateSite(t, "")
			code, _, stderr := s.run("terraform", stateTarget, "--", "no-such-terraform", command)
			if code != exitNotFound || !strings.Contains(stderr, "no-such-terraform") || s.ops() != "" {
				t.Errorf("exit code %d, stderr %q, requests %q", code, stderr, s.ops())
			}
		})
	}
}

// TestTerraformNoState: Terraform would lock it itself, to create it.
func TestTerraformNoState(t *testing.T) {
	for workspace, create := range map[string]string{"default": "terraform init", "prod": "terraform workspace new prod"} {
		t.Run(workspace, func(t *testing.T) {
			s := newStateSite(t, "echo ran")
			s.server.Delete("jobs", stateObject)
			code, stdout, stderr := s.run("terraform", "--workspace", workspace, stateTarget, "--", "terraform", "apply")
			if code != exitStorage || stdout != "" || !strings.Contains(stderr, "/"+workspace+".tfstate does not exist yet") || !strings.Contains(stderr, "run "+create+" first") || !strings.Contains(stderr, "released ") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if _, ok := s.server.Object("jobs", "team/app/"+workspace+".tflock"); ok {
				t.Error("the lock was not released")
			}
		})
	}
}

// TestTerraformStateUnknown: what else a look at the state meets is Terraform's.
func TestTerraformStateUnknown(t *testing.T) {
	s := newStateSite(t, "echo ran")
	s.server.Inject(gcstest.Fault{Op: gcstest.Get, Object: stateObject, Do: gcstest.Forbid("storage.objects.get")})
	if code, stdout, stderr := s.run("terraform", stateTarget, "--", "terraform", "apply"); code != 0 || stdout != "ran\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestTerraformNoVersion: the lock does not depend on it.
func TestTerraformNoVersion(t *testing.T) {
	for _, answer := range []string{"exit 1", "echo no JSON"} {
		t.Run(answer, func(t *testing.T) {
			s := newStateSite(t, "")
			program := filepath.Join(t.TempDir(), "terraform")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n[ \"$1\" != version ] || { "+answer+"; }\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			code, _, stderr := s.run("terraform", stateTarget, "--", program, "apply")
			if code != 0 || !strings.Contains(stderr, "the lock does not tell the version: ") || !strings.Contains(stderr, "released") {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
		})
	}
}

// TestTerraformCost is what docs/terraform.md says.
func TestTerraformCost(t *testing.T) {
	s := newStateSite(t, "")
	s.run("terraform", stateTarget, "--", "terraform", "apply")
	if got := s.ops(); got != "create get delete" {
		t.Errorf("requests are %q, want create get delete", got)
	}
}
