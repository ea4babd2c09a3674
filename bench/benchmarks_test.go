package bench

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestBenchmarksRun runs the smallest case of each benchmark, so that none rots
// between the runs that make docs/performance.md. It asserts no figure, but that
// each has the same ones as the saved run that bench/report is tested on.
func TestBenchmarksRun(t *testing.T) {
	list, err := exec.Command(os.Args[0], "-test.list=^Benchmark").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(list))
	if len(names) == 0 {
		t.Fatal("there is no benchmark")
	}
	saved, err := os.ReadFile("report/testdata/run.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command(os.Args[0], "-test.short", "-test.run=^$", "-test.bench=^"+name+"$", "-test.benchtime=1x").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if strings.Contains(string(out), "NaN") {
				t.Errorf("a figure is not a number:\n%s", out)
			}
			got, want := units(t, name, string(out)), units(t, name, string(saved))
			if got != want {
				t.Errorf("figures %s, the saved run has %s", got, want)
			}
		})
	}
}

// units are those of the benchmark's first line in the output: the smallest case.
func units(t *testing.T, name, output string) string {
	t.Helper()
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], name) {
			continue
		}
		var units []string
		for i := 3; i < len(fields); i += 2 {
			units = append(units, fields[i])
		}
		return strings.Join(units, " ")
	}
	t.Fatalf("no figures of %s in:\n%s", name, output)
	return ""
}
