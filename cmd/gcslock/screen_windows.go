package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminalForColour tells whether the file is a console that understands
// colours, which it does not unless told to.
func terminalForColour(file *os.File) bool {
	var mode uint32
	console := windows.Handle(file.Fd())
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
