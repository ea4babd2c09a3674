//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// stateDirectory is where this user's programs find each other, made if it is
// not there. One that others could write to is refused: they could send our
// requests where they like.
func stateDirectory() (string, error) {
	directory := filepath.Join(os.TempDir(), fmt.Sprintf("gcslock-%d", os.Getuid()))
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		directory = filepath.Join(runtime, "gcslock")
	}
	if err := os.Mkdir(directory, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	info, err := os.Lstat(directory)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(stat.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s is not a directory that this user alone can use: remove it", directory)
	}
	return directory, nil
}

// lockFile takes the lock of a file, which is made if it is not there. It ends
// with the process at the latest.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() { _ = f.Close() }, nil
}

// detach has the command started in a session of its own: no terminal's end,
// and no Ctrl-C, reaches it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
