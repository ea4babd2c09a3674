package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// plan is what is run. What is short is run several times; what has a thousand
// leases or sections in it, or a minute, once.
var plan = [][]string{
	goTest("^Benchmark(Cycle|CycleAlike|Refresh|RefreshAlike|Run)$", "1s", 5),
	goTest("^BenchmarkContended$/workers=(2|8)$", "1x", 5),
	goTest("^BenchmarkContended$/workers=64$", "1x", 1),
	goTest("^Benchmark(RateLimited|Handoff|Many)$", "1x", 1),
	goTest("^BenchmarkCrash$", "1x", 3),
}

func goTest(pattern, benchtime string, count int) []string {
	return []string{"go", "test", "-run", "^$", "-bench", pattern, "-benchtime", benchtime,
		"-count", fmt.Sprint(count), "-timeout", "30m", "./bench"}
}

// measure runs the plan. Its output begins with lines of a key and a value, as
// those of go test do, that tell of what it was run.
func measure(also io.Writer) (string, error) {
	var text bytes.Buffer
	to := io.MultiWriter(&text, also)
	head, err := circumstances()
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(to, head); err != nil {
		return "", err
	}
	began := time.Now()
	for _, args := range plan {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = io.MultiWriter(to, os.Stderr), os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%s: %w", quote(args), err)
		}
	}
	_, err = fmt.Fprintf(to, "took: %v\n", time.Since(began).Round(time.Second))
	return text.String(), err
}

func circumstances() (string, error) {
	version, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOVERSION: %w", err)
	}
	revision, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12").Output()
	if err != nil {
		return "", fmt.Errorf("git describe: %w", err)
	}
	head := fmt.Sprintf("revision: %sgo: %sdate: %s\ncpus: %d\n",
		revision, version, time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil { // Linux
		head += "load: " + strings.Fields(string(load))[0] + "\n"
	}
	for _, args := range plan {
		head += "command: " + quote(args) + "\n"
	}
	return head, nil
}

// quote is the command as a shell takes it.
func quote(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if words[i] = a; strings.ContainsAny(a, "^$|()") {
			words[i] = "'" + a + "'"
		}
	}
	return strings.Join(words, " ")
}
