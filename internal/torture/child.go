package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// A child is this program in one of its other roles. It ends when its stdin
// does.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	err   error // how it ended, once it has
}

// startChild starts one, which is killed when ctx ends. stdout may be nil.
func startChild(ctx context.Context, role, plan string, stdout *os.File) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, role, plan)
	cmd.Stderr = os.Stderr
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = isolate()
	c := &child{cmd: cmd, ended: make(chan struct{})}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The signal at the parent's death comes when this thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
		}
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	return c, nil
}

// kill ends it at once, and returns when it is dead.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}

// leave asks it to end.
func (c *child) leave() { _ = c.stdin.Close() }
