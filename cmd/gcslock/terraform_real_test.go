//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/gcslock/gcslock/gcstest"
)

// The tests of this file run the real programs, those that are installed.
// terraform_test.go has the same behaviour without them.

// A realSite is a site with a real program, and a directory for it.
type realSite struct {
	*site
	program, directory string
}

// configuration has a resource before and one after a slow one, which waits for
// a file, or the end of its terraform. Nothing of it has to be downloaded.
const configuration = `
terraform {
  backend "gcs" {
    bucket                  = "jobs"
    prefix                  = "/team/app/"
    access_token            = "x"
    storage_custom_endpoint = "%s/storage/v1/"
  }
}
variable "script" { default = "true" }
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  depends_on       = [terraform_data.first]
  triggers_replace = [var.script]
  provisioner "local-exec" { command = var.script }
}
resource "terraform_data" "last" {
  depends_on = [terraform_data.slow]
}
`

// eachProgram runs the test with Terraform and with OpenTofu.
func eachProgram(t *testing.T, test func(s *realSite)) {
	for _, program := range []string{"terraform", "tofu"} {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(program + " is not installed: not tested with the real program")
			}
			s := &realSite{newSite(t), program, t.TempDir()}
			url := strings.TrimPrefix(s.env[0], "STORAGE_EMULATOR_HOST=")
			if !strings.Contains(url, "://") {
				url = "http://" + url
			}
			s.write("main.tf", fmt.Sprintf(configuration, url))
			s.write("rc", "")
			s.env = append(s.env, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_INPUT=0", "TF_CLI_ARGS=-no-color", "TF_CLI_ARGS_force_unlock=-force",
				"TF_CLI_CONFIG_FILE="+filepath.Join(s.directory, "rc"), "TF_WORKSPACE=", "TF_DATA_DIR=", "TF_LOG=")
			// It locks by itself, to create the state.
			if code, stdout, stderr := s.run(s.locked("init")...); code != 0 {
				t.Fatalf("init: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			test(s)
		})
	}
}

func (s *realSite) write(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.directory, name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// locked are the arguments that run a command of the program under the lock.
func (s *realSite) locked(command ...string) []string {
	return s.lockedWith(nil, command...)
}

func (s *realSite) lockedWith(flags []string, command ...string) []string {
	args := append(append([]string{"terraform"}, flags...), stateTarget, "--", s.program, "-chdir="+s.directory)
	return append(args, command...)
}

// plain runs the program without gcslock.
func (s *realSite) plain(command ...string) (code int, output string) {
	s.Helper()
	var out bytes.Buffer
	cmd := s.plainCommand(command...)
	cmd.Stdout, cmd.Stderr = &out, &out
	return s.code(cmd.Run()), out.String()
}

func (s *realSite) plainCommand(command ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.Context(), s.program, append([]string{"-chdir=" + s.directory}, command...)...)
	cmd.Env = append(os.Environ(), s.env...)
	return cmd
}

// slowApply is an apply that says "in the middle" there, and goes on when
// release has been called.
func (s *realSite) slowApply() (command []string, release func()) {
	script := `echo in "the middle"; while kill -0 $PPID && ! [ -e released ]; do sleep 0.05; done 2>/dev/null`
	return []string{"apply", "-auto-approve", "-var", "script=" + script}, func() { s.write("released", "") }
}

// inState tells whether the state has the resource.
func (s *realSite) inState(resource string) bool {
	s.Helper()
	obj, _ := s.server.Object("jobs", stateObject)
	var state struct{ Resources []struct{ Name string } }
	if err := json.Unmarshal(obj.Content, &state); err != nil {
		s.Fatal(err)
	}
	for _, r := range state.Resources {
		if r.Name == resource {
			return true
		}
	}
	return false
}

var shownID = regexp.MustCompile(`ID: +(\d+)`)

// TestRealPlainIsKeptOut, shows who holds the lock, and can remove it by the ID
// that it shows. The holder is told, and saves its state.
func TestRealPlainIsKeptOut(t *testing.T) {
	eachProgram(t, func(s *realSite) {
		apply, _ := s.slowApply()
		p := s.start(s.lockedWith([]string{"--ttl", "6s"}, apply...)...)
		p.stdout.until("in the middle")
		lock, _ := s.stateLock()

		code, output := s.plain("plan")
		id := shownID.FindStringSubmatch(output)
		if code == 0 || id == nil || id[1] != fmt.Sprint(lock.Generation) {
			s.Fatalf("exit code %d, want the lock's ID %d in %q", code, lock.Generation, output)
		}
		for _, text := range []string{"OperationTypeApply", "gs://jobs/" + stateLock, "held through gcslock"} {
			if !strings.Contains(output, text) {
				s.Errorf("it does not show %q: %q", text, output)
			}
		}
		if code, output := s.plain("force-unlock", id[1]); code != 0 {
			s.Fatalf("force-unlock: exit code %d: %q", code, output)
		}
		p.stderr.until("abandoned")
		p.stdout.until("Interrupt received")
		if code := p.wait(); code != exitLost {
			s.Errorf("exit code %d, want %d", code, exitLost)
		}
		if !s.inState("first") || s.inState("last") {
			s.Error("it did not save what it had, or went on")
		}
		if code, output := s.plain("plan"); code != 0 {
			s.Errorf("afterwards: exit code %d: %q", code, output)
		}
	})
}

// TestRealKeepsUsOut: a lock of the program's own, which is told of and stays.
func TestRealKeepsUsOut(t *testing.T) {
	eachProgram(t, func(s *realSite) {
		apply, release := s.slowApply()
		holder := s.plainCommand(apply...)
		stdout := s.pipe(&holder.Stdout)
		if err := holder.Start(); err != nil {
			s.Fatal(err)
		}
		stdout.until("in the middle")
		lock, _ := s.stateLock()

		code, _, stderr := s.run(s.lockedWith([]string{"--wait", "0"}, "plan")...)
		if code != exitLocked || !strings.Contains(stderr, `"OperationTypeApply" by "`) ||
			!strings.Contains(stderr, fmt.Sprintf("%s -chdir=%s force-unlock %d", s.program, s.directory, lock.Generation)) {
			s.Errorf("exit code %d, stderr %q", code, stderr)
		}
		p := s.start(s.locked(append([]string{"plan"}, apply[2:]...)...)...)
		p.stderr.until("never taken over")
		if now, _ := s.stateLock(); now.Generation != lock.Generation {
			s.Error("the lock is another one")
		}
		release()
		if code := s.code(holder.Wait()); code != 0 {
			s.Errorf("the holder: exit code %d", code)
		}
		p.stdout.until("No changes") // hence it saw the state that the holder wrote
		if code := p.wait(); code != 0 {
			s.Errorf("exit code %d", code)
		}
	})
}

// TestRealKilled outright in the middle of an apply: the next one gets in after
// the ttl, and goes on with it.
func TestRealKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no parent-death signal on " + runtime.GOOS)
	}
	eachProgram(t, func(s *realSite) {
		apply, release := s.slowApply()
		p := s.start(s.lockedWith([]string{"--ttl", "5s"}, apply...)...)
		p.stdout.until("in the middle")
		p.signal(syscall.SIGKILL)
		p.wait()
		p.stdout.rest() // ends when the program has no end of the pipe any more
		left, ok := s.stateLock()
		if !ok || s.inState("last") {
			s.Fatal("nobody was left to release, but the lock is gone, or the apply has gone on")
		}
		release()
		code, stdout, stderr := s.run(s.locked(apply...)...)
		if code != 0 || !strings.Contains(stderr, "took over the stale lock") || !strings.Contains(stdout, "Apply complete") {
			s.Errorf("exit code %d, stdout %q, stderr %q; the lock left was %+v", code, stdout, stderr, left)
		}
		if !s.inState("last") {
			s.Error("the state lacks what the second apply made")
		}
	})
}

// TestRealTerminated: a cancelled job's state is saved, and its lock released.
func TestRealTerminated(t *testing.T) {
	eachProgram(t, func(s *realSite) {
		apply, _ := s.slowApply()
		p := s.start(s.locked(apply...)...)
		p.stdout.until("in the middle")
		p.signal(syscall.SIGTERM)
		p.stdout.until("Interrupt received")
		if code := p.wait(); code != 1 {
			s.Errorf("exit code %d, want the program's", code)
		}
		if _, ok := s.stateLock(); ok || !s.inState("first") || s.inState("last") {
			s.Error("the lock is still there, or the state was not saved, or it went on")
		}
	})
}

// TestRealCommands: none of those that lock waits for the lock that is held for
// it, and none of the others takes it.
func TestRealCommands(t *testing.T) {
	eachProgram(t, func(s *realSite) {
		for _, tt := range []struct {
			command string
			locks   bool
		}{
			{"plan", true},
			{"apply -auto-approve", true},
			{"taint terraform_data.first", true},
			{"untaint terraform_data.first", true},
			{"state mv terraform_data.first terraform_data.other", true},
			{"state rm terraform_data.other", true},
			{"import terraform_data.first id", true},
			{"refresh", true},
			{"state replace-provider -auto-approve registry.terraform.io/a/b registry.terraform.io/c/d", true},
			{"validate", false},
			{"output", false},
			{"show", false},
			{"state list", false},
			{"version", false},
			{"destroy -auto-approve", true},
			{"workspace new prod", false},
			{"workspace select default", false},
			{"workspace delete prod", false},
		} {
			s.server.ResetRequests()
			code, stdout, stderr := s.run(s.locked(strings.Fields(tt.command)...)...)
			if code != 0 {
				s.Fatalf("%s: exit code %d, stdout %q, stderr %q", tt.command, code, stdout, stderr)
			}
			if locked := strings.Contains(stderr, "acquired gs://jobs/"+stateLock); locked != tt.locks {
				s.Errorf("%s: under the lock: %v", tt.command, locked)
			}
			if locks := s.lockings(); tt.locks && locks != 1 {
				s.Errorf("%s: %d locks were taken, want ours", tt.command, locks)
			}
		}
		if _, ok := s.stateLock(); ok {
			s.Error("a lock is left")
		}
	})
}

// lockings is how many lock objects somebody tried to create.
func (s *realSite) lockings() int {
	n := 0
	for _, r := range s.server.Requests() {
		if r.Op == gcstest.Create && strings.HasSuffix(r.Object, ".tflock") {
			n++
		}
	}
	return n
}

// TestRealPush: the state that is pushed is the one that was pulled.
func TestRealPush(t *testing.T) {
	eachProgram(t, func(s *realSite) {
		code, state, stderr := s.run(s.locked("state", "pull")...)
		if code != 0 || stderr != "" {
			s.Fatalf("pull: exit code %d, stderr %q", code, stderr)
		}
		s.write("pushed.tfstate", state)
		if code, _, stderr := s.run(s.locked("state", "push", "pushed.tfstate")...); code != 0 || !strings.Contains(stderr, "released") {
			s.Errorf("push: exit code %d, stderr %q", code, stderr)
		}
	})
}

// TestRealPlan: a saved plan carries the state that it is for, and another one's
// lock would not protect it.
func TestRealPlan(t *testing.T) {
	eachProgram(t, func(s *realSite) {
		if code, _, stderr := s.run(s.locked("plan", "-out=saved")...); code != 0 {
			s.Fatalf("plan: exit code %d, stderr %q", code, stderr)
		}
		s.server.Put("jobs", "team/app/prod.tfstate", gcstest.Object{})
		code, _, stderr := s.run(s.lockedWith([]string{"--workspace", "prod"}, "apply", "saved")...)
		if code != exitUsage || !strings.Contains(stderr, `saved is for the workspace "default", not "prod"`) {
			s.Errorf("in another workspace: exit code %d, stderr %q", code, stderr)
		}

		other := "gs://jobs/other"
		s.server.Put("jobs", "other/default.tfstate", gcstest.Object{})
		data := s.initialise(`{"bucket": "jobs", "prefix": "other"}`)
		code, _, stderr = s.run("terraform", other, "--", s.program, "-chdir="+s.directory, "apply", "saved")
		if code != exitUsage || !strings.Contains(stderr, "saved is for the state at gs://jobs/team/app, and a lock at gs://jobs/other would not protect it") {
			s.Errorf("in another directory, %s: exit code %d, stderr %q", data, code, stderr)
		}
		s.env = append(s.env, "TF_DATA_DIR=")
		if code, stdout, stderr := s.run(s.locked("apply", "saved")...); code != 0 || !s.inState("last") {
			s.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	})
}
