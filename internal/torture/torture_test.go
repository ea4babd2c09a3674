package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain: the processes of a run are this program, which in a test is the
// test's.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == roleWorker || os.Args[1] == roleEmulator) {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestTorture is a short run, which leaves nothing behind.
func TestTorture(t *testing.T) {
	if !canRun {
		t.Skip("needs Linux")
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	r := run{processes: 3, duration: 5 * time.Second, seed: 1, ttl: 3 * time.Second, out: &out}
	if err := r.do(t.Context()); err != nil || !strings.Contains(out.String(), "\n0 violations\n") {
		t.Errorf("%v\n%s", err, &out)
	}
	wantNothingLeft(t, &r)
}

// TestInterrupted: no process and no file outlives an interrupt.
func TestInterrupted(t *testing.T) {
	if !canRun {
		t.Skip("needs Linux")
	}
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupt signal received")
	time.AfterFunc(2*time.Second, func() { cancel(interrupt) })
	r := run{processes: 3, duration: time.Hour, seed: 1, ttl: 3 * time.Second, out: t.Output()}
	if err := r.do(ctx); !errors.Is(err, interrupt) {
		t.Errorf("%v, want %v", err, interrupt)
	}
	wantNothingLeft(t, &r)
}

func wantNothingLeft(t *testing.T, r *run) {
	t.Helper()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	threads, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is right
	for _, path := range threads {
		if children, err := os.ReadFile(path); err == nil && len(children) > 0 {
			t.Errorf("processes left: %s", children)
		}
	}
	for _, s := range r.slots {
		if process, c := s.now(); c != nil {
			t.Errorf("%s is left", process)
		}
	}
	select {
	case <-r.server.child.ended:
	default:
		t.Error("the server is left")
	}
}
