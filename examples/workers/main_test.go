//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/leases"
)

// beWorkers has the test program be the example.
const beWorkers = "BE_WORKERS"

func TestMain(m *testing.M) {
	if os.Getenv(beWorkers) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// An instance is a process of the example.
type instance struct {
	*testing.T
	cmd *exec.Cmd
	url string
}

func startInstance(t *testing.T, env string, args ...string) *instance {
	t.Helper()
	i := &instance{T: t, cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	i.cmd.Env = append(os.Environ(), beWorkers+"=1", env)
	i.cmd.Stderr = os.Stderr
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = i.cmd.Process.Kill() // it may have ended
		_, _ = i.cmd.Process.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 5 {
		t.Fatalf("it said %q: %v", line, err)
	}
	i.url = fields[2]
	return i
}

// health is what /healthz says, by worker.
func (i *instance) health() map[string]leases.Status {
	i.Helper()
	response, err := http.Get(i.url + "/healthz")
	if err != nil {
		i.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		i.Fatal(err)
	}
	var health struct {
		Holder  string
		Workers []leases.Status
	}
	if err := json.Unmarshal(body, &health); err != nil || response.StatusCode != http.StatusOK || health.Holder == "" {
		i.Fatalf("%s: %s (%v)", response.Status, body, err)
	}
	all := map[string]leases.Status{}
	for _, s := range health.Workers {
		all[s.Name] = s
	}
	return all
}

// until waits until all three workers are in a state here, and returns them.
func (i *instance) until(state leases.State, limit time.Duration) map[string]leases.Status {
	i.Helper()
	ctx, cancel := context.WithTimeout(i.Context(), limit)
	defer cancel()
	for {
		health, n := i.health(), 0
		for _, s := range health {
			if s.State == state && (state != leases.Following || s.Holder != "") {
				n++
			}
		}
		switch {
		case n == 3:
			return health
		case ctx.Err() != nil:
			i.Fatalf("not all are %s after %v: %+v", state, limit, health)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestTwoInstances: one leads and is killed, the other one takes all three
// workers over; a third one starts, and has them at once when the second is
// told to end.
func TestTwoInstances(t *testing.T) {
	server := gcstest.New("jobs")
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	emulator := "STORAGE_EMULATOR_HOST=" + listener.EmulatorHost()
	// Generous: the machine may be busy.
	const limit = time.Minute
	args := []string{"-ttl", "4s", "-interval", "1s", "-every", "100ms"}

	first := startInstance(t, emulator, args...)
	led := first.until(leases.Leading, limit)
	second := startInstance(t, emulator, args...)
	second.until(leases.Following, limit)

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	taken := second.until(leases.Leading, limit)
	for name, s := range taken {
		if s.Token == led[name].Token || s.Token == 0 {
			t.Errorf("worker %q has token %d, and had %d before", name, s.Token, led[name].Token)
		}
	}

	third := startInstance(t, emulator, args...)
	third.until(leases.Following, limit)
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	third.until(leases.Leading, limit)
	if err := third.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := third.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	for _, name := range []string{"consumer", "backfill", "cleanup"} {
		if _, ok := server.Object("jobs", "workers/"+name); ok {
			t.Errorf("the lease of %q is left", name)
		}
	}
}

// TestWithoutLeases: for local development, without storage and credentials.
func TestWithoutLeases(t *testing.T) {
	i := startInstance(t, "GOOGLE_APPLICATION_CREDENTIALS=/nonexistent", "-leases=false")
	for name, s := range i.until(leases.Leading, time.Minute) {
		if s.Token != 0 || s.Object != "" {
			t.Errorf("worker %q: %+v", name, s)
		}
	}
	if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := i.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
