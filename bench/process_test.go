package bench

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// A process is this program as a server, a worker or a holder. It ends when its
// stdin does, so that none is left over when the benchmark itself is killed.
type process struct {
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	cmd    *exec.Cmd
}

// startProcess starts the program with the variable set to the setting, in JSON.
// What has not ended when the benchmark is over is killed then.
func startProcess(tb testing.TB, variable string, setting any) *process {
	tb.Helper()
	text, err := json.Marshal(setting)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &process{stdin, bufio.NewScanner(stdout), cmd}
	tb.Cleanup(p.kill)
	return p
}

// line is the next line that the process writes.
func (p *process) line(tb testing.TB) string {
	tb.Helper()
	if !p.stdout.Scan() {
		tb.Fatalf("a process of the benchmark ended early: %v", p.stdout.Err())
	}
	return p.stdout.Text()
}

// end has the process end, and waits for it.
func (p *process) end(tb testing.TB) {
	tb.Helper()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		tb.Errorf("a process of the benchmark: %v", err)
	}
}

// kill ends the process at once, as a crash does, if it has not ended yet.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may be ending just now
		_ = p.cmd.Wait()         // says that it was killed
	}
}
