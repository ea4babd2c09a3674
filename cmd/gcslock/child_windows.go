package main

import "os"

// prepare does nothing: there are no process groups to signal here.
func (c *child) prepare() (restore func()) { return func() {} }

// signal ends the command, whatever the signal: there is no milder way to a
// process that shares no console with us.
func (c *child) signal(os.Signal) { c.kill() }

// kill ends the command. That it has ended is no error.
func (c *child) kill() { _ = c.cmd.Process.Kill() }

func killedBy(*os.ProcessState) (int, bool) { return 0, false }
