// Command contend has many processes take turns at one lock through the gcslock
// command and a local server, and checks that no two of them overlapped. It
// prints what that took: time, requests per section, turns per process.
//
//	go run ./internal/contend -processes 20 -sections 30 -length 1s
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func main() {
	processes := flag.Int("processes", 20, "how many processes contend")
	sections := flag.Int("sections", 30, "how many turns each of them takes")
	length := flag.Duration("length", time.Second, "how long a turn takes")
	section := flag.String("section", "", "be one section, and record it in this file")
	flag.Parse()

	var err error
	if *section != "" {
		err = record(*section, *length)
	} else {
		err = contend(*processes, *sections, *length)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "contend:", err)
		os.Exit(1)
	}
}

func contend(processes, sections int, length time.Duration) error {
	directory, err := os.MkdirTemp("", "contend")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	gcslock := filepath.Join(directory, "gcslock")
	if out, err := exec.Command("go", "build", "-o", gcslock, "github.com/gcslock/gcslock/cmd/gcslock").CombinedOutput(); err != nil {
		return fmt.Errorf("build gcslock: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server := gcstest.New("contend")
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()

	journal := filepath.Join(directory, "journal")
	began := time.Now()
	failures := make([]error, processes)
	var workers sync.WaitGroup
	for i := range processes {
		workers.Go(func() {
			for range sections {
				cmd := exec.Command(gcslock, "run", "--quiet", "--owner", fmt.Sprint("process-", i), "gs://contend/lock", "--",
					self, "-section", journal, "-length", length.String())
				cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+listener.EmulatorHost())
				if out, err := cmd.CombinedOutput(); err != nil {
					failures[i] = fmt.Errorf("process %d: %w: %s", i, err, out)
					return
				}
			}
		})
	}
	workers.Wait()
	took := time.Since(began)
	if err := errors.Join(failures...); err != nil {
		return err
	}
	history, err := read(journal)
	if err != nil {
		return err
	}
	report, err := check(history, processes, sections)
	if err != nil {
		return err
	}
	fmt.Printf("%d processes × %d sections of %v in %v\n%s", processes, sections, length, took.Round(time.Millisecond), report)
	requests := server.Requests()
	count := map[gcstest.Op]int{}
	for _, r := range requests {
		count[r.Op]++
	}
	turns := float64(processes * sections)
	fmt.Printf("requests per section: %.1f (creates %.2f, reads %.1f, updates %.2f, deletes %.2f)\n",
		float64(len(requests))/turns, float64(count[gcstest.Create])/turns, float64(count[gcstest.Get])/turns,
		float64(count[gcstest.Update])/turns, float64(count[gcstest.Delete])/turns)
	return nil
}
