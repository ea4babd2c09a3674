package main

import (
	"errors"
	"os/exec"
)

// stateDirectory says what to do instead: the shared emulator rests on file
// permissions and file locks as Unix has them.
func stateDirectory() (string, error) {
	return "", errors.New("--emulator does not work on Windows: start gcslock emulator, and set STORAGE_EMULATOR_HOST as it says")
}

func lockFile(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }

func detach(*exec.Cmd) {}
