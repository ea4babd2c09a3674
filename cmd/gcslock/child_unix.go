//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare gives the command a process group of its own. If stdin is a terminal
// and we are in its foreground, the group is put there instead of ours, so that
// the command can read it and gets what is typed, Ctrl-C included; restore
// takes the terminal back.
func (c *child) prepare() (restore func()) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	c.cmd.SysProcAttr = attr
	terminal := int(os.Stdin.Fd())
	group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return func() {}
	}
	attr.Foreground, attr.Ctty = true, terminal
	return func() {
		// A process in the background that does this is stopped by SIGTTOU,
		// unless it ignores it.
		signal.Ignore(unix.SIGTTOU)
		defer signal.Reset(unix.SIGTTOU)
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, group) // the terminal may be gone
	}
}

// signal passes a signal on to the whole group. That there is none any more is
// no error: ended is about to tell.
func (c *child) signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = unix.Kill(-c.cmd.Process.Pid, n)
	}
}

func (c *child) kill() { c.signal(unix.SIGKILL) }

// become is the command from here on: signals, the terminal and the exit code
// need nobody in between. It returns only if that fails.
func become(path string, args, environment []string) (int, error) {
	return 0, &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, args, environment)}
}

// killedBy is the signal that ended the process, if one did.
func killedBy(state *os.ProcessState) (int, bool) {
	if state == nil {
		return 0, false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return int(status.Signal()), ok && status.Signaled()
}
