//go:build unix

package main

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/gcslock/gcslock/gcstest"
)

// counting says ready, and counts the signals that it gets: at the last of them
// it waits for a line and ends.
func counting(last int) string {
	return fmt.Sprintf(`n=0; told() { n=$((n+1)); echo "$1 $n"; [ $n -lt %d ] || { read line; exit 9; }; }
trap "told INT" INT; trap "told TERM" TERM; trap "told HUP" HUP; echo ready; while :; do sleep 0.02; done`, last)
}

// interruptsTerraform: whatever asks gcslock to end interrupts terraform. Another
// signal would end its plugins under it. (A line of docs/cli.md, as are the others
// here that are no tests of their own.)
func interruptsTerraform(sig syscall.Signal) func(*site, string) {
	return func(s *site, _ string) {
		s.addState(counting(2))
		p, release := s.startHeld("terraform", stateTarget, "--", "terraform", "apply")
		p.stdout.until("ready")
		p.signal(sig)
		p.stdout.until("INT 1")
		p.signal(syscall.SIGINT) // people do that who can't wait
		p.stdout.until("INT 2")
		if _, ok := s.stateLock(); !ok {
			s.Error("released under a terraform that still runs")
		}
		release()
		if code := p.wait(); code != 9 {
			s.Errorf("exit code %d, want terraform's", code)
		}
		if _, ok := s.stateLock(); ok {
			s.Error("the lock was not released")
		}
	}
}

// TestTerraformAsIsGetsSignals as they are.
func TestTerraformAsIsGetsSignals(t *testing.T) {
	s := newStateSite(t, counting(1))
	p, release := s.startHeld("terraform", stateTarget, "--", "terraform", "console")
	p.stdout.until("ready")
	p.signal(syscall.SIGTERM)
	p.stdout.until("TERM 1")
	release()
	if code := p.wait(); code != 9 {
		t.Errorf("exit code %d, want terraform's", code)
	}
}

// lostTerraform: it is interrupted, and has the grace.
func lostTerraform(s *site, _ string) {
	s.addState(counting(1))
	p, release := s.startHeld("terraform", "--ttl", "3s", "--grace", "1h", stateTarget, "--", "terraform", "apply")
	p.stdout.until("ready")
	s.server.Delete("jobs", stateLock)
	p.stderr.until("abandoned")
	p.stdout.until("INT 1")
	release() // it saves its state in the grace
	if code := p.wait(); code != exitLost {
		s.Errorf("exit code %d, want %d", code, exitLost)
	}
}

// TestTerraformInterruptedOnce: a second interrupt would keep it from saving what
// it was doing. Neither what a service sends that does not want to wait, nor a
// loss, is one.
func TestTerraformInterruptedOnce(t *testing.T) {
	s := newStateSite(t, counting(3))
	p := s.start("terraform", "--ttl", "3s", "--grace", "500ms", stateTarget, "--", "terraform", "apply")
	p.stdout.until("ready")
	p.signal(syscall.SIGTERM)
	p.stdout.until("INT 1")
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGHUP)
	s.server.Delete("jobs", stateLock)
	p.stderr.until("abandoned")
	if code := p.wait(); code != exitLost {
		t.Errorf("exit code %d, want %d", code, exitLost)
	}
	if rest := p.stdout.rest(); rest != "" { // returns after the kill
		t.Errorf("terraform was told %q", rest)
	}
}

// cutOffTerraform from storage: it is interrupted, and gone before others can have
// the lock.
func cutOffTerraform(s *site, _ string) {
	s.addState(counting(9))
	p := s.start("terraform", "--ttl", "3s", stateTarget, "--", "terraform", "apply")
	p.stdout.until("ready")
	s.server.Inject(gcstest.Fault{Op: gcstest.Update, Do: gcstest.FailStatus(503)})
	p.stderr.until("abandoned")
	p.stdout.until("INT 1")
	if code := p.wait(); code != exitLost {
		s.Errorf("exit code %d, want %d", code, exitLost)
	}
	if rest := p.stdout.rest(); rest != "" { // returns after the kill
		s.Errorf("terraform was told %q", rest)
	}
}
