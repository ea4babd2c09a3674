package bench

import (
	"testing"
	"time"
)

// TestProcessesEnd: none is left over, whatever happens to the benchmark.
func TestProcessesEnd(t *testing.T) {
	var left *process
	t.Run("a benchmark that fails before it ends its processes", func(t *testing.T) {
		left = startProcess(t, beServer, serverSetting{})
		left.line(t)
	})
	if left.cmd.ProcessState == nil {
		t.Error("the server runs on after its benchmark")
	}
	t.Run("a worker in a wait whose benchmark is killed", func(t *testing.T) {
		server := startProcess(t, beServer, serverSetting{})
		setting := workerSetting{URL: server.line(t), Workers: 2, Quota: 1, Section: time.Hour}
		server.kill()
		worker := startProcess(t, beWorker, setting)
		worker.line(t)
		if _, err := worker.stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		endInTime(t, worker)
	})
	t.Run("a holder whose benchmark is killed", func(t *testing.T) {
		server := startProcess(t, beServer, serverSetting{})
		holder := startProcess(t, beHolder, holderSetting{URL: server.line(t), Leases: 1, TTL: time.Minute})
		holder.line(t)
		endInTime(t, holder)
	})
}

// endInTime closes the process's stdin, as the system does for a benchmark that is
// killed, and fails if the process does not end for a minute.
func endInTime(t *testing.T, p *process) {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	p.end(t)
}
