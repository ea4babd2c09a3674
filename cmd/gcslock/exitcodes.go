package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/gcslock/gcslock"
)

// The exit codes, of sysexits.h and of the shell. exitCodeTable documents them.
const (
	exitOK            = 0
	exitFree          = 3   // as systemctl status has it for what does not run
	exitUsage         = 64  // EX_USAGE
	exitStorage       = 69  // EX_UNAVAILABLE
	exitLost          = 70  // EX_SOFTWARE
	exitOutput        = 74  // EX_IOERR
	exitLocked        = 75  // EX_TEMPFAIL
	exitUnfit         = 78  // EX_CONFIG
	exitNotExecutable = 126 // as a shell has it
	exitNotFound      = 127 // as a shell has it
	exitSignal        = 128 // and the signal's number, as a shell has it
)

// The docs have the same lines: a test compares them.
const exitCodeTable = `Exit codes:
  0      done; run, terraform: the command's own code, whatever it is; check: the
         lock can be relied on
  3      status: the lock is free
  64     usage: a flag, a name or a duration is wrong; no request was sent
  69     storage: no permission, no bucket, no network; terraform: or no state yet
  70     run, terraform: the lease was lost; the command was stopped, or had just
         ended
  74     the output could not be written
  75     run, terraform: others hold the lock, and the wait is over; break: refused,
         because the lock looks alive, is foreign, or has another ID by now
  78     check: the lock can't be relied on before what is marked FAIL is mended
  126    run, terraform: the command can't be executed
  127    run, terraform: the command was not found
  128+n  run, terraform: the command died of signal n, or gcslock was told to end
         by signal n while it waited for the lock; check: it was told to end by
         signal n, and has removed its probe objects`

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
	fmt.Fprintf(stderr, "gcslock: %s\n", oneLine(err))
	var usage usageError
	var file *fs.PathError
	if errors.As(err, &file) && !errors.As(err, &usage) {
		return exitOutput // the one kind of file that is not named by a flag
	}
	// What is left are mistakes in the command line: the commands tell all
	// others themselves, cobra knows no other kind.
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
