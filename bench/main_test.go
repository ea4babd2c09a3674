// Package bench measures the lock against the floor of a lock on Cloud Storage:
// one create and one delete. All that is a time or a share of the machine is told
// as a ratio to a floor of the same run, or beside it. docs/performance.md has the
// figures; bench/report, in this directory, makes it.
//
// With -short each benchmark runs its smallest case, to see that it runs; its
// figures mean nothing.
package bench

import (
	"fmt"
	"os"
	"testing"
)

// What the test program is when one of these variables is set: servers and workers
// run in processes of their own, so that their CPU and memory are their own, too.
const (
	beServer = "BENCH_SERVER"
	beWorker = "BENCH_WORKER"
	beHolder = "BENCH_HOLDER"
)

func TestMain(m *testing.M) {
	for variable, run := range map[string]func(setting string) error{beServer: serve, beWorker: work, beHolder: hold} {
		if setting := os.Getenv(variable); setting != "" {
			if err := run(setting); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// sized is the first, or with -short the second.
func sized[T any](full, short T) T {
	if testing.Short() {
		return short
	}
	return full
}
