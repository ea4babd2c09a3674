package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testdata/run.txt is the output of a run, in part made up: its figures mean nothing.
// testdata/want is what came of it. To make that anew:
//
//	go run ./bench/report -in bench/report/testdata/run.txt -docs bench/report/testdata/want
func saved(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/run.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs is a directory with a page that has all markers and nothing between them.
func docs(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("testdata/want/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	empty := regexp.MustCompile(`(?s)(<!-- begin \w+ -->\n).*?(<!-- end)`).ReplaceAll(page, []byte("${1}stale figures\n$2"))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "performance.md"), empty, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run writes the page from the output.
func run(t *testing.T, output, docs string) error {
	t.Helper()
	in := filepath.Join(t.TempDir(), "run.txt")
	if err := os.WriteFile(in, []byte(output), 0o644); err != nil {
		t.Fatal(err)
	}
	return report(in, "", docs)
}

func TestPage(t *testing.T) {
	dir := docs(t)
	if err := run(t, saved(t), dir); err != nil {
		t.Fatal(err)
	}
	files := []string{"performance.md"}
	for _, c := range charts() {
		files = append(files, filepath.Join("performance", c.name+".svg"))
	}
	for _, name := range files {
		want, err := os.ReadFile(filepath.Join("testdata/want", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not that of testdata/want:\n%s", name, got)
		}
		if err := xml.Unmarshal(got, new(struct{})); filepath.Ext(name) == ".svg" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMissing(t *testing.T) {
	for _, tt := range []struct{ name, remove, want string }{
		{"benchmark", `(?m)^BenchmarkMany/leases=10000.*$`, "no BenchmarkMany/leases=10000"},
		{"figure", ` \S+ jain`, "no jain of BenchmarkContended/workers=8/delay=0s/processes=many/quota=free"},
		{"revision", `revision: .*`, "revision"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := docs(t)
			before, err := os.ReadFile(filepath.Join(dir, "performance.md"))
			if err != nil {
				t.Fatal(err)
			}
			err = run(t, regexp.MustCompile(tt.remove).ReplaceAllString(saved(t), ""), dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
			after, err := os.ReadFile(filepath.Join(dir, "performance.md"))
			if err != nil || string(after) != string(before) {
				t.Errorf("the page was written all the same (%v)", err)
			}
		})
	}
}

func TestFailedBenchmark(t *testing.T) {
	err := run(t, saved(t)+"--- FAIL: BenchmarkCrash/waiter=after\n", docs(t))
	if err == nil || !strings.Contains(err.Error(), "BenchmarkCrash/waiter=after") {
		t.Errorf("error %v, want one that names it", err)
	}
}

func TestMissingMarker(t *testing.T) {
	dir := docs(t)
	if err := os.WriteFile(filepath.Join(dir, "performance.md"), []byte("# Empty\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t, saved(t), dir); err == nil || !strings.Contains(err.Error(), "begin goals") {
		t.Errorf("error %v, want one that names the marker", err)
	}
}

func TestParse(t *testing.T) {
	r, err := parse("go: go1.26\nBenchmarkX/a=1-16 \t 3 \t 2.0 ms\t 7 B/lease\nok  \tpkg\t1.2s\nBenchmarkX/a=1-16 1 4 ms 8 B/lease\nBenchmarkX/a=1\n")
	if err != nil {
		t.Fatal(err)
	}
	value, runs, err := r.get(figure{"X/a=1", "ms", median})
	if err != nil || value != 3 || len(runs) != 2 {
		t.Errorf("median %v of %v, %v", value, runs, err)
	}
	if value, _, err := r.get(figure{"X/a=1", "B/lease", most}); err != nil || value != 8 {
		t.Errorf("most %v, %v", value, err)
	}
	if version, err := r.one("go"); err != nil || version != "go1.26" {
		t.Errorf("version %q, %v", version, err)
	}
	if _, err := parse("BenchmarkX 1 many ms\n"); err == nil {
		t.Error("a value that is no number was taken")
	}
}

func TestMet(t *testing.T) {
	for _, tt := range []struct {
		least bool
		value float64
		want  bool
	}{{false, 9, true}, {false, 10, true}, {false, 11, false}, {true, 9, false}, {true, 10, true}, {true, 11, true}} {
		if got := (goal{limit: 10, least: tt.least}).met(tt.value); got != tt.want {
			t.Errorf("%v with a limit of 10 (at least: %v) is met: %v", tt.value, tt.least, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{0: "0", -0.001: "0", 1: "1", 1.0295: "1.03", 9.999: "10", 12.34: "12.3", 99.96: "100", 4096.4: "4096", -12.34: "-12.3"} {
		if got := number(value); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}

func TestTick(t *testing.T) {
	for largest, want := range map[float64]float64{1: 0.2, 3: 0.5, 7: 1, 150: 20, 4096: 500, 0: 1} {
		if got := tick(largest); got < want*0.999 || got > want*1.001 {
			t.Errorf("up to %v: %v, want %v", largest, got, want)
		}
	}
}
