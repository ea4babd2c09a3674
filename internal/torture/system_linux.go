package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// canRun: processes can be stopped, die with their parent, and have a clock in
// common.
const canRun = true

// machineTime is a clock that all processes of the machine share, that never
// steps, and that goes on in suspend, as the lease's own does.
func machineTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every kernel that Go supports has it
	}
	return time.Duration(ts.Nano())
}

// isolate gives a child a process group of its own, so that Ctrl-C reaches the
// parent alone, and has the kernel kill it when the parent's thread ends.
func isolate() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func cont(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
