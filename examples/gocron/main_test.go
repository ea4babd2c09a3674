//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// beGocron has the test program be the example.
const beGocron = "BE_GOCRON"

func TestMain(m *testing.M) {
	if os.Getenv(beGocron) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestDemo: two processes, of which the one that ran the job last is killed, and
// the other goes on. It ends when it has.
func TestDemo(t *testing.T) {
	for _, mode := range []string{"-elect=false", "-elect=true"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			demo := exec.CommandContext(t.Context(), os.Args[0], "-demo", mode, "-every", "1s", "-ttl", "3s")
			demo.Env = append(os.Environ(), beGocron+"=1")
			var said, failed bytes.Buffer
			demo.Stdout, demo.Stderr = &said, &failed
			if err := demo.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, &said, &failed)
			}
			before, after, ok := strings.Cut(said.String(), "kill -9 of the ")
			killed, after, _ := strings.Cut(after, "\n")
			if !ok || !strings.Contains(before, killed+" runs ") {
				t.Fatalf("it said\n%s", &said)
			}
			other := map[string]string{"first": "second", "second": "first"}[killed]
			if n := strings.Count(after, other+" runs "); n < runs {
				t.Errorf("after the kill of the %s it said\n%s", killed, after)
			}
		})
	}
}
