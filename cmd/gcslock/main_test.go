package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// beGcslock has the test program be gcslock, so that the tests run real
// processes without a build of their own.
const beGcslock = "BE_GCSLOCK"

func TestMain(m *testing.M) {
	if os.Getenv(beGcslock) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A site is a Cloud Storage on loopback, for gcslock processes.
type site struct {
	*testing.T
	server *gcstest.Server
	env    []string
}

const target = "gs://jobs/lock"

func newSite(t *testing.T) *site {
	t.Parallel()
	return newSiteOf(t)
}

// newSiteOf is for tests that have several.
func newSiteOf(t *testing.T) *site {
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
	return &site{T: t, server: server, env: []string{"STORAGE_EMULATOR_HOST=" + listener.EmulatorHost()}}
}

// command is a gcslock process that is not started yet. It ends with the test.
func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), beGcslock+"=1"), s.env...)
	return cmd
}

// run runs gcslock to its end.
func (s *site) run(args ...string) (code int, stdout, stderr string) {
	s.Helper()
	var out, err bytes.Buffer
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &err
	return s.code(cmd.Run()), out.String(), err.String()
}

func (s *site) code(err error) int {
	s.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

func (s *site) object() (gcstest.Object, bool) { return s.server.Object("jobs", "lock") }

// rival puts the lock object of a live holder in place, replacing any.
func (s *site) rival(owner string) gcstest.Object {
	return s.server.Put("jobs", "lock", gcstest.Object{Metadata: map[string]string{
		"owner": owner, "nonce": "n", "ttl": "1m0s", "expires-at": time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano),
	}})
}

// A process is a gcslock that runs.
type process struct {
	*site
	cmd            *exec.Cmd
	stdout, stderr *lines
}

// start starts gcslock, with nothing to read on stdin.
func (s *site) start(args ...string) *process {
	s.Helper()
	return s.startReading(nil, args...)
}

// startHeld starts gcslock with a stdin from which nothing comes: a command that
// reads it goes on when release is called, and not before.
func (s *site) startHeld(args ...string) (p *process, release func()) {
	s.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	p = s.startReading(r, args...)
	r.Close() // the process has its own
	s.Cleanup(func() { w.Close() })
	return p, func() { w.Close() }
}

func (s *site) startReading(stdin io.Reader, args ...string) *process {
	s.Helper()
	p := &process{site: s, cmd: s.command(args...)}
	p.cmd.Stdin = stdin
	// Pipes of our own: a grandchild may keep them open after Wait.
	p.stdout, p.stderr = s.pipe(&p.cmd.Stdout), s.pipe(&p.cmd.Stderr)
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	for _, end := range []io.Writer{p.cmd.Stdout, p.cmd.Stderr} {
		end.(*os.File).Close() // the process has its own
	}
	return p
}

func (s *site) pipe(to *io.Writer) *lines {
	r, w, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	*to = w
	s.Cleanup(func() { r.Close() })
	return &lines{site: s, scanner: bufio.NewScanner(r)}
}

// wait is the exit code, once the process has ended.
func (p *process) wait() int {
	p.Helper()
	return p.code(p.cmd.Wait())
}

func (p *process) signal(sig os.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.Fatal(err)
	}
}

// lines are what a process writes, one at a time.
type lines struct {
	*site
	scanner *bufio.Scanner
	seen    []string
}

// until reads up to a line that has the text, and returns that line.
func (l *lines) until(text string) string {
	l.Helper()
	for l.scanner.Scan() {
		l.seen = append(l.seen, l.scanner.Text())
		if strings.Contains(l.scanner.Text(), text) {
			return l.scanner.Text()
		}
	}
	l.Fatalf("no line says %q: %q", text, l.seen)
	return ""
}

// line is the next one.
func (l *lines) line() string {
	l.Helper()
	return l.until("")
}

// rest reads until nobody can write any more, and returns what was not read
// before.
func (l *lines) rest() string {
	var rest []string
	for l.scanner.Scan() {
		rest = append(rest, l.scanner.Text())
	}
	return strings.Join(rest, "\n")
}

// ops are the requests so far, in order.
func (s *site) ops() string {
	var ops []string
	for _, r := range s.server.Requests() {
		ops = append(ops, fmt.Sprint(r.Op))
	}
	return strings.Join(ops, " ")
}
