package main

import "os"

// prepare does nothing: there are no process groups to signal here.
func (c *child) prepare() (restore func()) { return func() {} }

// signal ends the command, whatever the signal: there is no milder way to a
// process that shares no console with us.
func (c *child) signal(os.Signal) { c.kill() }

// kill ends the command. That it has ended is no error.
func (c *child) kill() { _ = c.cmd.Process.Kill() }

// become runs the command in our place, and returns its exit code. Ctrl-C reaches
// it by the console that it shares with us.
func become(path string, args, environment []string) (int, error) {
	defer catchSignals().stop()
	c := newChild(path, args, environment)
	if err := c.start(); err != nil {
		return 0, err
	}
	return <-c.ended, nil
}

func killedBy(*os.ProcessState) (int, bool) { return 0, false }
