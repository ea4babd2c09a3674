package main

import (
	"strings"
	"testing"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// TestBreak: what is removed, what is refused, and what is said of it.
func TestBreak(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		args       string
		code       int
		stdout     string
		stderr     string
	}{
		{"stale", stale, "--id ID", 0, "removed gs://jobs/lock state stale", ""},
		{"stale, older format", olderStale, "--id ID", 0, "removed gs://jobs/lock state stale", ""},
		{"stale, whatever the local clock says", slowClock, "--id ID", 0, "removed gs://jobs/lock", ""},
		{"stale, forced", stale, "--id ID --force", 0, "owner me host box pid 4711 operation nightly import", ""},
		{"live", live, "--id ID", exitLocked, "", `not broken: it looks alive: where its holder is gone for good, wait until it is stale, or add --force; gs://jobs/lock is held by "me" on "box", pid 4711, for "nightly import", since 5m`},
		{"live, whatever the local clock says", fastClock, "--id ID", exitLocked, "", "it looks alive"},
		{"live, forced", live, "--id ID --force", 0, "removed gs://jobs/lock state live", "its holder learns of this at its next refresh"},
		{"foreign", foreign, "--id ID", exitLocked, "", "no lock of gcslock's, and nothing tells whether it is alive"},
		{"foreign, forced", foreign, "--id ID --force", 0, "removed gs://jobs/lock state foreign", ""},
		{"another ID", stale, "--id 5", exitLocked, "", `5 is not the ID of the lock that is there now; gs://jobs/lock is held by "me"`},
		{"another ID, live", live, "--id 5", exitLocked, "", "5 is not the ID of the lock that is there now"},
		{"another ID, forced", live, "--id 5 --force", exitLocked, "", "5 is not the ID of the lock that is there now"},
		{"gone", free, "--id 5", 0, "gs://jobs/lock is free already: there is nothing to break", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			id := s.put(tt.kind, "lock")
			args := append([]string{"break", target}, strings.Fields(strings.ReplaceAll(tt.args, "ID", id))...)
			code, stdout, stderr := s.run(args...)
			words := strings.Join(strings.Fields(stdout), " ")
			if code != tt.code || !strings.Contains(words, tt.stdout) || (words == "") != (tt.stdout == "") ||
				!strings.Contains(stderr, tt.stderr) || (stderr == "") != (tt.stderr == "") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if strings.Contains(stdout, "gcslock break") {
				t.Errorf("tells how to do what is done: %q", stdout)
			}
			_, there := s.object()
			if removed := tt.kind != free && tt.code == 0; there == removed && tt.kind != free {
				t.Errorf("the object is there: %v", there)
			}

			id = s.put(tt.kind, "lock") // it may be gone
			code, stdout, _ = s.run(append([]string{"break", "--json", target}, strings.Fields(strings.ReplaceAll(tt.args, "ID", id))...)...)
			r := s.reports(stdout)[0]
			if code != tt.code || r["removed"] != (tt.code == 0 && tt.kind != free) || r["state"] != stateOfLock[tt.kind] {
				t.Errorf("--json: exit code %d, %v", code, r)
			}
		})
	}
}

// TestBreakTerraform tells whose lock that was, and not how to remove it.
func TestBreakTerraform(t *testing.T) {
	s := newSite(t)
	id := s.put(terraformOwn, "default.tflock")
	code, stdout, _ := s.run("break", "gs://jobs/default.tflock", "--id", id, "--force")
	if code != 0 || !strings.Contains(stdout, "jo@box") || strings.Contains(stdout, "unlock") || strings.Contains(stdout, "never") {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
}

// TestBreakCommand leads to the server that the lock was seen on.
func TestBreakCommand(t *testing.T) {
	for emulator, want := range map[bool]string{false: "gcslock break 'gs://jobs/a b' --id 7", true: "gcslock break 'gs://jobs/a b' --id 7 --emulator"} {
		l := &looker{bucket: "jobs", emulator: emulator}
		if got := l.breakCommand(&gcslock.Info{Object: "a b", Generation: 7}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBreakRaces: the lock changes hands, or goes, between the look and the
// deletion.
func TestBreakRaces(t *testing.T) {
	for _, tt := range []struct {
		name           string
		change         func(s *site)
		code           int
		stdout, stderr string
	}{
		{"another's", func(s *site) { s.rival("somebody") }, exitLocked, "", `is held by "somebody"`},
		{"gone", func(s *site) { s.server.Delete("jobs", "lock") }, 0, "is free already", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			id := s.put(stale, "lock")
			barrier := gcstest.NewBarrier()
			s.server.Inject(gcstest.Fault{Op: gcstest.Get, Skip: 1, Times: 1, Do: gcstest.Hold(barrier)})
			p := s.start("break", target, "--id", id)
			if err := barrier.Arrived(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			tt.change(s)
			barrier.Release()
			stdout, stderr := p.stdout.rest(), p.stderr.rest()
			if code := p.wait(); code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if _, there := s.object(); there != (tt.code == exitLocked) {
				t.Errorf("there is an object: %v", there)
			}
		})
	}
}
