//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalForColour tells whether the file is a terminal. Only terminals have a
// size, as musl's isatty goes by.
func terminalForColour(file *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
