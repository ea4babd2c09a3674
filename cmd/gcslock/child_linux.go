package main

import "syscall"

// dieWithParent has the kernel kill the command when we are killed ourselves.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
