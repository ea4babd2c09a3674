// Command torture has many processes take turns at one lock while they are
// killed, stopped for longer than the ttl and cut off, and while the server is
// killed and started again with its objects, and checks afterwards that no two
// of them held the lock at once by their own accounts.
//
//	go run ./internal/torture -processes 10 -duration 20m
//
// Workers, the server and the network between them are this program, on
// loopback. A seed decides what happens, not when: no two runs are the same. A
// violation is printed with its lines, and the journal is kept.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The roles of this program: a first argument that flags never are.
const (
	roleWorker   = "worker"
	roleEmulator = "emulator"
)

func main() {
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

func role() error {
	if !canRun {
		return errors.New("it needs Linux: signals that stop a process, and a clock that all processes share")
	}
	if len(os.Args) == 3 && os.Args[1] == roleEmulator {
		return emulate(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == roleWorker {
		var plan workerPlan
		if err := json.Unmarshal([]byte(os.Args[2]), &plan); err != nil {
			return err
		}
		return work(plan)
	}
	r := run{out: os.Stdout}
	flag.IntVar(&r.processes, "processes", 10, "how many workers")
	flag.DurationVar(&r.duration, "duration", time.Minute, "for how long there is trouble")
	flag.Uint64Var(&r.seed, "seed", 1, "decides what happens")
	flag.DurationVar(&r.ttl, "ttl", 3*time.Second, "the shortest ttl; the longest is twice that")
	flag.BoolVar(&r.verbose, "v", false, "print the warnings of the workers' locks")
	flag.Parse()
	if r.processes < 1 || r.duration <= 0 || flag.NArg() > 0 {
		return errors.New("-processes and -duration have to be positive, and there are no arguments")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return r.do(ctx)
}
