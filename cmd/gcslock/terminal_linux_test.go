package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a new pseudo-terminal: the end of the person, and of the program.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestTerminal: the command reads what is typed, and Ctrl-C is its, as without
// gcslock. A command in a process group of its own is stopped when it reads,
// unless that group is given the foreground; and so would be the second one
// here, if the first had not given the terminal back.
func TestTerminal(t *testing.T) {
	s := newSite(t)
	person, program := terminal(t)
	shell := s.command()
	shell.Path, shell.Args = "/bin/sh", []string{"sh", "-c", fmt.Sprintf(
		`"%[1]s" run --quiet %[2]s -- sh -c 'echo ready; read line; echo "got $line"'
		read line; echo "shell got $line"
		"%[1]s" run --quiet %[2]s -- sh -c 'echo ready; exec sleep 1000'; echo "code $?"`, os.Args[0], target)}
	shell.Stdin, shell.Stdout, shell.Stderr = program, program, program
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	screen := &lines{site: s, scanner: bufio.NewScanner(person)}
	typed := func(text string) {
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	screen.until("ready")
	typed("hello\n")
	screen.until("got hello")
	typed("again\n")
	screen.until("shell got again")
	screen.until("ready")
	typed("\x03")
	if line := screen.until("code "); !strings.Contains(line, "code 130") {
		t.Errorf("after Ctrl-C: %q", line)
	}
	_ = shell.Wait() // its code is the last echo's
	if _, ok := s.object(); ok {
		t.Error("the lock was not released")
	}
}
