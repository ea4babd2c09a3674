package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gcslock/gcslock"
)

// The exit codes, of sysexits.h and of the shell. exitCodeTable documents them.
const (
	exitOK            = 0
	exitUsage         = 64  // EX_USAGE
	exitStorage       = 69  // EX_UNAVAILABLE
	exitLost          = 70  // EX_SOFTWARE
	exitLocked        = 75  // EX_TEMPFAIL
	exitUnfit         = 78  // EX_CONFIG
	exitNotExecutable = 126 // as a shell has it
	exitNotFound      = 127 // as a shell has it
	exitSignal        = 128 // and the signal's number, as a shell has it
)

const exitCodeTable = `Exit codes:
  the command's own
  64     usage: a flag, a name or a duration is wrong; no request was sent
  69     storage: no permission, no bucket, no network
  70     the lease was lost; the command was stopped, or had just ended
  75     the lock is held by others, and the wait is over
  126    the command can't be executed
  127    the command was not found
  128+n  the command died of signal n, or gcslock was told to end by signal n
         while it waited for the lock`

// A usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// A codeError ends the program with a code. The error has been told, where
// there is one to tell.
type codeError struct{ code int }

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode tells the error that ends the program, unless that was done, and
// returns the code for it.
func exitCode(stderr io.Writer, err error) int {
	var code codeError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return code.code
	}
	// What is left are mistakes in the command line: run tells all others
	// itself, cobra knows no other kind.
	fmt.Fprintf(stderr, "gcslock: %s\n", oneLine(err))
	return exitUsage
}

// oneLine is an error without the package's prefix, which the program's own
// takes the place of. Joined errors are on lines of their own otherwise.
func oneLine(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", "; "), "gcslock: ")
}

// lockCode is the exit code for an error of the library.
func lockCode(err error) int {
	switch {
	case errors.Is(err, gcslock.ErrLockAbandoned):
		return exitLost
	case errors.Is(err, gcslock.ErrLocked):
		return exitLocked
	}
	return exitStorage
}
