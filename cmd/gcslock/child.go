package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// A child is the command while it runs.
type child struct {
	cmd   *exec.Cmd
	ended chan int // its exit code
}

func newChild(path string, args, environment []string) *child {
	// Files as they are, so that no goroutine copies, and the command gets the
	// terminal, if there is one.
	return &child{
		cmd: &exec.Cmd{
			Path: path, Args: args, Env: environment,
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		},
		ended: make(chan int, 1),
	}
}

// start starts the command. Its exit code comes through ended.
func (c *child) start() error {
	started := make(chan error)
	go func() {
		// The parent-death signal of Linux comes when the thread ends that
		// started the child, not the process: this one stays with its
		// goroutine until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		restore := c.prepare()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			restore()
			return
		}
		err = c.cmd.Wait()
		restore()
		c.ended <- codeOf(c.cmd.ProcessState, err)
	}()
	return <-started
}

// codeOf is the exit code as a shell has it.
func codeOf(state *os.ProcessState, err error) int {
	if n, ok := killedBy(state); ok {
		return exitSignal + n
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return exitNotExecutable // it ran, but could not be waited for
	}
	return state.ExitCode()
}
