package bench

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// A process is this program as a server or a worker. It ends when its stdin does.
type process struct {
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	cmd    *exec.Cmd
}

// startProcess starts the program with the variable set to the setting, in JSON.
func startProcess(b *testing.B, variable string, setting any) *process {
	b.Helper()
	text, err := json.Marshal(setting)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return &process{stdin, bufio.NewScanner(stdout), cmd}
}

// line is the next line that the process writes.
func (p *process) line(b *testing.B) string {
	b.Helper()
	if !p.stdout.Scan() {
		b.Fatalf("%v ended early: %v", p.cmd.Args, p.stdout.Err())
	}
	return p.stdout.Text()
}

// end has the process end, and waits for it.
func (p *process) end(b *testing.B) {
	b.Helper()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		b.Error(err)
	}
}
