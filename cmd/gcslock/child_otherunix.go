//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing where there is no such signal: after a SIGKILL of
// gcslock the command runs on, which the help says.
func dieWithParent(*syscall.SysProcAttr) {}
