//go:build !unix

package bench

import (
	"testing"
	"time"
)

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	b.Skip("CPU time is measured on Unix systems only")
	return 0
}
