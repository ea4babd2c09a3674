//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func TestEmulator(t *testing.T) {
	s := newSite(t)
	p := s.start("emulator", "--bucket", "one", "--bucket", "two")
	url, ok := strings.CutPrefix(p.stdout.until("STORAGE_EMULATOR_HOST"), "export STORAGE_EMULATOR_HOST=")
	if !ok || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("printed %q", p.stdout.seen)
	}
	client, err := newClient(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, bucket := range []string{"one", "two"} {
		if err := gcstest.SelfCheck(t.Context(), client.Bucket(bucket), ""); err != nil {
			t.Error(err)
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 || p.stdout.rest() != "" {
		t.Errorf("exit code %d, stdout %q", code, p.stdout.seen)
	}
}

// shared is a site whose processes have their state in a directory of its own,
// and an emulator that ends soon after the test.
func shared(t *testing.T) (s *site, directory string) {
	s = newSite(t)
	runtime := t.TempDir()
	s.env = []string{"XDG_RUNTIME_DIR=" + runtime, idleVariable + "=1s"}
	return s, filepath.Join(runtime, "gcslock")
}

func stateOf(t *testing.T, directory string) sharedState {
	t.Helper()
	state, ok := readState(filepath.Join(directory, "emulator.json"))
	if !ok {
		t.Fatal("no state file")
	}
	return state
}

// TestSharedEmulator: two first runs at once start one server, which outlives
// them and ends when it is idle.
func TestSharedEmulator(t *testing.T) {
	s, directory := shared(t)
	first := s.start("run", "--emulator", "--ttl", "3s", target, "--", "sh", "-c", "echo ready; exec sleep 1000")
	second := s.start("run", "--emulator", "--ttl", "3s", target, "--", "sh", "-c", "echo ready; exec sleep 1000")
	held := make(chan *process)
	for _, p := range []*process{first, second} {
		go func() {
			if p.stdout.scanner.Scan() {
				held <- p
			}
		}()
	}
	holder, waiter := <-held, second
	if holder == second {
		waiter = first
	}
	// They see each other's lock: it is one server.
	waiter.stderr.until("waiting")
	holder.signal(syscall.SIGKILL)
	holder.wait()
	<-held // the waiter gets in, on the server that has survived
	waiter.signal(syscall.SIGTERM)
	waiter.wait()

	state := stateOf(t, directory)
	address := strings.TrimPrefix(state.URL, "http://")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for alive(ctx, state) && ctx.Err() == nil { // each look is a request, so pause for longer than idle
		time.Sleep(1500 * time.Millisecond)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the idle emulator did not end")
	}
}

// TestSharedEmulatorIsReplaced: what the state file leads to is not ours, or is
// there no more.
func TestSharedEmulatorIsReplaced(t *testing.T) {
	for name, content := range map[string]func(other string) string{
		"garbage":       func(string) string { return "garbage" },
		"nobody there":  func(string) string { return `{"url":"http://127.0.0.1:1","bucket":"b"}` },
		"somebody else": func(other string) string { return `{"url":"` + other + `","bucket":"gcslock-emulator-x"}` },
		"off this host": func(string) string { return `{"url":"http://192.0.2.1:80","bucket":"b"}` },
	} {
		t.Run(name, func(t *testing.T) {
			s, directory := shared(t)
			listener, err := s.server.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			if err := os.Mkdir(directory, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(directory, "emulator.json"), []byte(content(listener.URL())), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := s.run("run", "--emulator", "gs://new-bucket/lock", "--", "true"); code != 0 {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			if state := stateOf(t, directory); state.URL == listener.URL() {
				t.Error("used somebody else's server")
			}
		})
	}
}

// TestStateDirectory: one that others can write to is refused.
func TestStateDirectory(t *testing.T) {
	s, directory := shared(t)
	if err := os.Mkdir(directory, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(directory, 0o777); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := s.run("run", "--emulator", target, "--", "true")
	if code != exitStorage || !strings.Contains(stderr, directory) || !strings.Contains(stderr, "this user alone") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

// TestStateFile has what readState wants.
func TestStateFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	want := sharedState{URL: "http://127.0.0.1:4", Bucket: "b"}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := readState(file); !ok || got != want {
		t.Errorf("read %+v, %v", got, ok)
	}
}
