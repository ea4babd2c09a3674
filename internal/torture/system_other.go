//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const canRun = false

func machineTime() time.Duration { return 0 }

func isolate() *syscall.SysProcAttr { return nil }

func stop(*os.Process) error { return errors.ErrUnsupported }
func cont(*os.Process) error { return errors.ErrUnsupported }
