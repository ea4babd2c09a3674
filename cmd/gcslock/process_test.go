//go:build unix

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// passesOn: the command gets the signal, and the release follows its end. (A
// line of docs/cli.md, as are the others here that are no tests of their own.)
func passesOn(sig syscall.Signal) func(*site, string) {
	return func(s *site, _ string) {
		p := s.start("run", target, "--", "sh", "-c",
			fmt.Sprintf(`trap "echo told; read line; exit 9" %d; echo ready; while :; do sleep 0.02; done`, sig))
		p.stdout.until("ready")
		p.signal(sig)
		p.stdout.until("told")
		if code := p.wait(); code != 9 {
			s.Errorf("exit code %d, want the command's", code)
		}
		if _, ok := s.object(); ok {
			s.Error("the lock was not released")
		}
	}
}

// TestReleaseFollowsTheEnd: while the command still stops, the lock is held.
func TestReleaseFollowsTheEnd(t *testing.T) {
	s := newSite(t)
	p, stop := s.startHeld("run", target, "--", "sh", "-c", `trap "echo told; read line; exit 0" TERM; echo ready; while :; do sleep 0.02; done`)
	p.stdout.until("ready")
	p.signal(syscall.SIGTERM)
	p.stdout.until("told")
	if _, ok := s.object(); !ok {
		t.Error("released under a command that still runs")
	}
	stop()
	p.wait()
	if _, ok := s.object(); ok {
		t.Error("not released after the command's end")
	}
}

// TestSignalWhileWaiting ends the wait, and leaves nothing behind.
func TestSignalWhileWaiting(t *testing.T) {
	s := newSite(t)
	rival := s.rival("somebody")
	p := s.start("run", target, "--", "echo", "ran")
	p.stderr.until("waiting")
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != exitSignal+15 {
		t.Errorf("exit code %d, want 143", code)
	}
	if line := p.stderr.until("terminated"); !strings.Contains(line, target) {
		t.Errorf("told %q", line)
	}
	if obj, ok := s.object(); !ok || obj.Generation != rival.Generation || p.stdout.rest() != "" {
		t.Error("the command ran, or the holder's object is gone")
	}
}

// killed: the command dies with gcslock, and the next one gets in after the ttl.
func killed(command string) func(*site, string) {
	return func(s *site, _ string) {
		const sleeps = "echo ready; exec sleep 1000"
		object, args := "lock", []string{"run", "--ttl", "3s", target, "--", "sh", "-c", sleeps}
		if command == "terraform" {
			s.addState(sleeps)
			object, args = stateLock, []string{"terraform", "--ttl", "3s", stateTarget, "--", "terraform", "apply"}
		}
		p := s.start(args...)
		p.stdout.until("ready")
		p.signal(syscall.SIGKILL)
		p.wait()
		p.stdout.rest() // ends when the command has no end of the pipe any more
		left, ok := s.server.Object("jobs", object)
		if !ok {
			s.Fatal("nobody was left to release, but the object is gone")
		}
		s.env = append(s.env, "FAKE=true")
		if command == "run" {
			args[len(args)-1] = "true"
		}
		code, _, stderr := s.run(args...)
		if code != 0 || !strings.Contains(stderr, "took over the stale lock") {
			s.Errorf("exit code %d, stderr %q", code, stderr)
		}
		if d := time.Since(left.Updated); d < 3*time.Second {
			s.Errorf("taken over %v after its last sign of life", d)
		}
	}
}

const loop = "echo ready; while :; do sleep 0.02; done"

// TestLostGroup: of a command that stops, and leaves a stubborn child, nothing is
// left.
func TestLostGroup(t *testing.T) {
	lost(`trap "exit 0" TERM; (trap "" TERM; `+loop+`) & wait; `, "")(newSite(t), "")
}

// lost: the whole group is told, then killed. The script sets the command's
// traps.
func lost(script, says string) func(*site, string) {
	return func(s *site, _ string) {
		p := s.start("run", "--ttl", "3s", "--grace", "200ms", target, "--", "sh", "-c", script+loop)
		p.stdout.until("ready")
		s.server.Delete("jobs", "lock")
		p.stderr.until("abandoned")
		if code := p.wait(); code != exitLost {
			s.Errorf("exit code %d, want %d", code, exitLost)
		}
		// Returns when nobody of the group is left that could write.
		if rest := p.stdout.rest(); rest != says {
			s.Errorf("the command says %q, want %q", rest, says)
		}
		if rest := p.stderr.rest(); strings.Contains(rest, "gcslock:") {
			s.Errorf("told again: %q", rest)
		}
		if _, ok := s.object(); ok {
			s.Error("a lost lock was created again")
		}
	}
}

// TestKillAfter: the grace, or less where others could come in earlier.
func TestKillAfter(t *testing.T) {
	for _, tt := range []struct{ grace, ttl, valid, want time.Duration }{
		{5 * time.Second, time.Minute, 30 * time.Second, 5 * time.Second}, // the object was deleted
		{5 * time.Second, time.Minute, 0, 4800 * time.Millisecond},        // the validity ran out
		{time.Second, time.Minute, 0, time.Second},                        // others come later than the grace
		{5 * time.Second, 10 * time.Second, 0, 800 * time.Millisecond},    // a short ttl
		{5 * time.Second, time.Minute, -time.Hour, 0},                     // noticed after a suspend
	} {
		if got := killAfter(tt.grace, tt.ttl, tt.valid); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
