package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkRun is gcslock run around a command, against the command alone and the
// requests alone. Its machine is warm after the first time.
func BenchmarkRun(b *testing.B) {
	program := filepath.Join(b.TempDir(), "gcslock")
	build := exec.Command("go", "build", "-o", program, "../cmd/gcslock")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(program)
	if err != nil {
		b.Fatal(err)
	}
	url := startServer(b, serverSetting{})
	s, err := newSite(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	bare := func() error { return exec.Command("true").Run() }
	locked := func() error {
		cmd := exec.Command(program, "run", "--quiet", "gs://"+bucketName+"/run", "--", "true")
		cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+url)
		cmd.Stderr = os.Stderr
		return cmd.Run()
	}
	floor, ours := compare(b, s.requests, 1, bare, locked)
	requests := sample(b, s.requests, 20, func() error { return bareCycle(context.Background(), s.bucket.Object("floor")) })
	b.ReportMetric(0, "ns/op")
	b.ReportMetric((ours.wall-floor.wall-requests.wall)/1e6, "beyond-ms")
	b.ReportMetric(ours.wall/floor.wall, "time/bare")
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}
