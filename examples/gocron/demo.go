package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/gcslock/gcslock/gcstest"
)

// runs is how many runs of the job the demonstration waits for, before the kill
// and after it.
const runs = 4

// demonstrate runs two instances of this program on a server of its own, kills
// the one that has run the job, and ends when the other one has gone on.
func demonstrate(ctx context.Context, c config) error {
	server, err := gcstest.New(c.bucket).Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	lines := make(chan string)
	processes := map[string]*exec.Cmd{}
	var reading sync.WaitGroup
	defer func() {
		for _, p := range processes {
			_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
		}
		for line := range lines {
			fmt.Println(line)
		}
	}()
	var failed error
	for _, name := range []string{"first", "second"} {
		p, err := start(ctx, name, server.EmulatorHost(), c, lines, &reading)
		if err != nil {
			failed = err
			break
		}
		processes[name] = p
	}
	go func() { reading.Wait(); close(lines) }()
	if failed != nil {
		return failed
	}
	return watch(ctx, lines, processes)
}

// watch shows the lines, kills an instance, and returns when the other one has
// gone on.
func watch(ctx context.Context, lines <-chan string, processes map[string]*exec.Cmd) error {
	before, after, killed := 0, 0, ""
	for after < runs {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, ok := <-lines:
			if !ok {
				return errors.New("both instances have ended")
			}
			fmt.Println(line)
			name, _, ran := strings.Cut(line, " runs ")
			switch {
			case !ran:
			case killed == "":
				if before++; before == runs {
					killed = name
					fmt.Printf("kill -9 of the %s\n", name)
					if err := processes[name].Process.Kill(); err != nil {
						return err
					}
				}
			case name != killed:
				after++
			}
		}
	}
	return nil
}

// start starts an instance, whose lines go to the channel.
func start(ctx context.Context, name, host string, c config, lines chan<- string, reading *sync.WaitGroup) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.CommandContext(ctx, self, "-name", name, "-bucket", c.bucket, fmt.Sprintf("-elect=%v", c.elect),
		"-every", c.every.String(), "-ttl", c.ttl.String())
	p.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+host)
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		return nil, err
	}
	reading.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
		_ = p.Wait() // it was killed, or told to stop
	})
	return p, nil
}
