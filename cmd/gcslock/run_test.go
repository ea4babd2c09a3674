package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/gcslock/gcslock/gcstest"
)

// TestExitCodes: the command's own, and those of exitCodeTable.
func TestExitCodes(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wrongFormat := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(wrongFormat, []byte{0x7f, 'E', 'L', 'F'}, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		prepare func(*site)
		args    []string
		code    int
		says    string // on stderr
	}{
		{"success", nil, []string{target, "--", "true"}, 0, "released gs://jobs/lock"},
		{"failure", nil, []string{target, "--", "sh", "-c", "exit 7"}, 7, "released gs://jobs/lock"},
		{"killed command", nil, []string{target, "--", "sh", "-c", "kill -TERM $$"}, 143, "released gs://jobs/lock"},
		{"no such command", nil, []string{target, "--", "no-such-command"}, 127, "no-such-command"},
		{"not executable", nil, []string{target, "--", notExecutable}, 126, "permission denied"},
		{"can't be started", nil, []string{target, "--", wrongFormat}, 126, "garbage"},
		{"held, one try", func(s *site) { s.rival("somebody") }, []string{"--wait", "0", target, "--", "true"}, 75, `gs://jobs/lock is locked by "somebody"`},
		{"held, wait over", func(s *site) { s.rival("somebody") }, []string{"--wait", "2s", target, "--", "true"}, 75, `gs://jobs/lock is locked by "somebody"`},
		{"forbidden", forbid("storage.objects.create"), []string{target, "--", "true"}, 69, "needs permission storage.objects.create"},
		{"no bucket", nil, []string{"gs://nowhere/lock", "--", "true"}, 69, "bucket does not exist"},
		{"release fails", forbid("storage.objects.delete"), []string{target, "--", "sh", "-c", "exit 7"}, 7, "needs permission storage.objects.delete"},
		{"lost at the end", nil, []string{target, "--", "sh", "-c", "exit 0"}, 70, "lock gs://jobs/lock abandoned"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			if tt.prepare != nil {
				tt.prepare(s)
			}
			if tt.code == exitLost {
				// The release finds that somebody has deleted the object.
				s.server.Inject(gcstest.Fault{Op: gcstest.Delete, Times: 1, Do: gcstest.FailStatus(404)})
			}
			code, _, stderr := s.run(append([]string{"run"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.says) {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, stderr, tt.code, tt.says)
			}
			if strings.Count(stderr, "gcslock: gcslock:") > 0 {
				t.Errorf("the prefix twice: %q", stderr)
			}
		})
	}
}

func forbid(permission string) func(*site) {
	op := map[string]gcstest.Op{"storage.objects.create": gcstest.Create, "storage.objects.delete": gcstest.Delete}[permission]
	return func(s *site) { s.server.Inject(gcstest.Fault{Op: op, Do: gcstest.Forbid(permission)}) }
}

// TestUsageErrors are refused before any request, with one line.
func TestUsageErrors(t *testing.T) {
	for _, tt := range []struct {
		args string
		says string
	}{
		{"run", "want gs://BUCKET/OBJECT -- COMMAND"},
		{"run gs://jobs/lock", "want gs://BUCKET/OBJECT -- COMMAND"},
		{"run gs://jobs/lock true", "want gs://BUCKET/OBJECT -- COMMAND"},
		{"run gs://jobs/lock --", "want gs://BUCKET/OBJECT -- COMMAND"},
		{"run -- gs://jobs/lock true", "want gs://BUCKET/OBJECT -- COMMAND"},
		{"run jobs/lock -- true", `"jobs/lock" does not name an object`},
		{"run gs://jobs -- true", `"gs://jobs" does not name an object`},
		{"run gs://jobs/ -- true", `"gs://jobs/" does not name an object`},
		{"run gs:///lock -- true", `"gs:///lock" does not name an object`},
		{"run gs://jobs/.. -- true", `".." is refused by Cloud Storage`},
		{"run --ttl 1s gs://jobs/lock -- true", "ttl 1s is not from 3s"},
		{"run --ttl soon gs://jobs/lock -- true", `"soon" for "--ttl"`},
		{"run --wait -1s gs://jobs/lock -- true", "--wait -1s is negative"},
		{"run --grace -1s gs://jobs/lock -- true", "--grace -1s is negative"},
		{"run --owner= gs://jobs/lock -- true", "owner label is empty"},
		{"run --payload /nonexistent gs://jobs/lock -- true", "/nonexistent"},
		{"run --payload-terraform gs://jobs/lock -- true", "does not end in .tflock"},
		{"run --payload x --payload-terraform gs://jobs/a.tflock -- true", "payload payload-terraform"},
		{"run --bogus gs://jobs/lock -- true", "unknown flag: --bogus"},
		{"status", "want gs://BUCKET/OBJECT; see gcslock status --help"},
		{"status gs://jobs/a gs://jobs/b", "want gs://BUCKET/OBJECT; see gcslock status --help"},
		{"status gs://jobs", `"gs://jobs" does not name an object`},
		{"status gs://jobs/..", `".." is refused by Cloud Storage`},
		{"watch", "want gs://BUCKET/OBJECT; see gcslock watch --help"},
		{"watch --every 99ms gs://jobs/lock", "--every 99ms is less than 100ms"},
		{"list", "want gs://BUCKET or gs://BUCKET/PREFIX; see gcslock list --help"},
		{"list jobs", `"jobs" does not name a bucket`},
		{"list gs://", `"gs://" does not name a bucket`},
		{"list gs:///x", `"gs:///x" does not name a bucket`},
		{"break", "want gs://BUCKET/OBJECT; see gcslock break --help"},
		{"break gs://jobs/lock", "want --id GENERATION: gcslock status gs://jobs/lock shows it"},
		{"break gs://jobs/$x --force", "want --id GENERATION: gcslock status 'gs://jobs/$x' shows it"},
		{"break gs://jobs/lock --id 0", "--id 0 is no generation: gcslock status gs://jobs/lock shows it"},
		{"break gs://jobs/lock --id latest", `"latest" for "--id"`},
		{"man", "accepts 1 arg(s), received 0"},
		{"frobnicate", `unknown command "frobnicate"`},
		{"emulator --listen 0.0.0.0:0", "not a loopback address"},
		{"emulator extra", `"extra"`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			s := newSite(t)
			code, stdout, stderr := s.run(strings.Fields(tt.args)...)
			if code != exitUsage || !strings.Contains(stderr, tt.says) || strings.Count(stderr, "\n") != 1 || stdout != "" {
				t.Errorf("exit code %d, stderr %q, stdout %q; want %d and one line with %q", code, stderr, stdout, exitUsage, tt.says)
			}
			if ops := s.ops(); ops != "" {
				t.Errorf("requests %q", ops)
			}
		})
	}
}

// TestRunCost: the command adds no request to the lock's own.
func TestRunCost(t *testing.T) {
	s := newSite(t)
	s.run("run", target, "--", "true")
	if got := s.ops(); got != "create delete" {
		t.Errorf("requests are %q, want create delete", got)
	}
}

func TestEnvironment(t *testing.T) {
	s := newSite(t)
	code, stdout, _ := s.run("run", "--owner", "me", "--operation", "import", target, "--", "sh", "-c",
		`echo "$GCSLOCK_BUCKET $GCSLOCK_OBJECT $GCSLOCK_OWNER $GCSLOCK_TOKEN"`)
	fields := strings.Fields(stdout)
	if code != 0 || len(fields) != 4 || strings.Join(fields[:3], " ") != "jobs lock me" || len(fields[3]) < 10 {
		t.Errorf("exit code %d, environment %q", code, stdout)
	}
	for _, r := range s.server.Requests() {
		if r.Op == gcstest.Create && (!strings.Contains(string(r.Body), `"owner":"me"`) || !strings.Contains(string(r.Body), `"operation":"import"`)) {
			t.Errorf("the object says %s", r.Body)
		}
	}
}

func TestPayload(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "info.json")
	if err := os.WriteFile(file, []byte(`{"ID":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, release := s.startHeld("run", "--payload", file, target, "--", "sh", "-c", "echo ready; read line")
	p.stdout.until("ready")
	if obj, _ := s.object(); string(obj.Content) != `{"ID":"x"}` || obj.ContentType != "application/json" {
		t.Errorf("content %q of type %q", obj.Content, obj.ContentType)
	}
	release()
	p.wait()
}

// TestWaiting says who holds the lock, once for each holder and not at each
// look.
func TestWaiting(t *testing.T) {
	s := newSite(t)
	s.rival("first")
	p := s.start("run", target, "--", "echo", "ran")
	if line := p.stderr.until("waiting"); !strings.Contains(line, `held by "first"`) || !strings.Contains(line, "unless it is refreshed until") {
		t.Errorf("told %q", line)
	}
	looks := func() int { return strings.Count(s.ops(), "get") }
	for n := looks(); looks() < n+3; time.Sleep(10 * time.Millisecond) { // condition: three more looks
	}
	s.rival("second")
	if line := p.stderr.until("waiting"); !strings.Contains(line, `held by "second"`) {
		t.Errorf("told %q: more than once of the first holder", line)
	}
	s.server.Delete("jobs", "lock")
	p.stderr.until("acquired")
	if code := p.wait(); code != 0 || p.stdout.rest() != "ran" {
		t.Errorf("exit code %d", code)
	}
}

// TestHostileHolder can't reach the terminal with what it wrote.
func TestHostileHolder(t *testing.T) {
	s := newSite(t)
	const hostile = "x\n\x1b[2J\u202e\rgcslock: all is well"
	obj := s.rival(hostile)
	obj.Metadata["operation"], obj.Metadata["host"] = hostile, hostile
	s.server.Put("jobs", "lock", obj)
	_, _, stderr := s.run("run", "--wait", "0", target, "--", "true")
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if len(lines) != 2 {
		t.Errorf("%d lines, want the wait and the error: %q", len(lines), lines)
	}
	for _, line := range lines {
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(line, `\x1b[2J`) {
			t.Errorf("printed %q", line)
		}
	}
}

// TestHostileHolderInJSON: nor with --json.
func TestHostileHolderInJSON(t *testing.T) {
	s := newSite(t)
	s.rival("\x1b[2J\u202e\u009b")
	_, _, stderr := s.run("run", "--json", "--wait", "2s", target, "--", "true")
	if bad := unprintable(stderr); bad != "" || !strings.Contains(stderr, `\u001b[2J\u202e\u009b`) {
		t.Errorf("printed %q, with %q", stderr, bad)
	}
}

func TestQuiet(t *testing.T) {
	s := newSite(t)
	if _, _, stderr := s.run("run", "--quiet", target, "--", "true"); stderr != "" {
		t.Errorf("told %q", stderr)
	}
	s.rival("somebody")
	if _, _, stderr := s.run("run", "--quiet", "--wait", "0", target, "--", "true"); strings.Count(stderr, "\n") != 1 {
		t.Errorf("an error is told as %q", stderr)
	}
}

func TestJSON(t *testing.T) {
	s := newSite(t)
	s.rival("somebody")
	p := s.start("run", "--json", target, "--", "true")
	waiting := p.stderr.until("waiting")
	s.server.Delete("jobs", "lock")
	p.wait()
	var events []string
	for _, line := range append([]string{waiting}, strings.Split(p.stderr.rest(), "\n")...) {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, m.Event)
		if m.Lock != target || m.Time.IsZero() || m.Text == "" {
			t.Errorf("message %q", line)
		}
		if m.Event == eventWaiting && (m.Holder == nil || m.Holder.Owner != "somebody" || m.Holder.Generation == 0) {
			t.Errorf("holder in %q", line)
		}
		if m.Event == eventAcquired && m.Token == 0 {
			t.Errorf("no token in %q", line)
		}
	}
	if got := strings.Join(events, " "); got != "waiting acquired released" {
		t.Errorf("events are %q", got)
	}
}

// TestRefreshTroubleIsTold, and costs nothing while the validity lasts.
func TestRefreshTroubleIsTold(t *testing.T) {
	s := newSite(t)
	s.server.Inject(gcstest.Fault{Op: gcstest.Update, Times: 1, Do: gcstest.FailStatus(503)})
	p := s.start("run", "--ttl", "3s", target, "--", "sleep", "2")
	if line := p.stderr.until("refresh failed"); !strings.Contains(line, "503") {
		t.Errorf("told %q", line)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
