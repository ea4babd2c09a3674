package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkRun is gcslock run around a command that does nothing, from the start of
// the process to its end, against the same command alone and a bare create and
// delete: what is beyond their sum is start-up and tear-down. The median of at least
// 20 runs, which come by turns.
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
	cycle := func() error { return bareCycle(b.Context(), s.bucket.Object("floor")) }
	var samples [3][]cost
	for range sized(20, 1) {
		for i, do := range []side{bare, cycle, locked} {
			samples[i] = append(samples[i], sample(b, s.requests, 1, do))
		}
	}
	command, requests, all := medianCost(samples[0]).wall, medianCost(samples[1]).wall, medianCost(samples[2]).wall
	b.ReportMetric(0, "ns/op")
	b.ReportMetric((all-command-requests)/1e6, "beyond-ms")
	b.ReportMetric((command+requests)/1e6, "floor-ms")
	b.ReportMetric(all/(command+requests), "time/floor")
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}
