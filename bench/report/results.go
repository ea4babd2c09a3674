package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results are what the benchmarks printed.
type results struct {
	about   map[string][]string             // the lines of a key and a value
	figures map[string]map[string][]float64 // by benchmark and unit; one for each run
}

var (
	aboutLine = regexp.MustCompile(`^([a-z]+): +(.*)$`)
	procs     = regexp.MustCompile(`-\d+$`) // GOMAXPROCS, at the end of each name
)

// parse reads the format that go test -bench has, see
// https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md.
// Lines of other kinds are skipped.
func parse(text string) (results, error) {
	r := results{map[string][]string{}, map[string]map[string][]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "--- FAIL") {
			return r, fmt.Errorf("a benchmark failed: %q", line)
		}
		if m := aboutLine.FindStringSubmatch(line); m != nil {
			r.about[m[1]] = append(r.about[m[1]], m[2])
			continue
		}
		// The name, the number of times, and pairs of a value and its unit.
		fields := strings.Fields(line)
		if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		if err := r.add(procs.ReplaceAllString(fields[0], ""), fields[2:]); err != nil {
			return r, fmt.Errorf("%q: %w", line, err)
		}
	}
	return r, nil
}

func (r results) add(name string, pairs []string) error {
	if r.figures[name] == nil {
		r.figures[name] = map[string][]float64{}
	}
	for i := 0; i < len(pairs); i += 2 {
		value, err := strconv.ParseFloat(pairs[i], 64)
		if err != nil {
			return err
		}
		unit := pairs[i+1]
		r.figures[name][unit] = append(r.figures[name][unit], value)
	}
	return nil
}

// A figure is one number of the page.
type figure struct {
	bench, unit string
	of          func([]float64) float64 // of several runs
}

// Of several runs most figures are the median. What is a worst case is the worst.
var (
	least = slices.Min[[]float64]
	most  = slices.Max[[]float64]
)

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// get gives the figure of all runs, and the values of each.
func (r results) get(f figure) (float64, []float64, error) {
	values := r.figures["Benchmark"+f.bench][f.unit]
	if len(values) == 0 {
		if r.figures["Benchmark"+f.bench] == nil {
			return 0, nil, fmt.Errorf("the output has no Benchmark%s", f.bench)
		}
		return 0, nil, fmt.Errorf("the output has no %s of Benchmark%s", f.unit, f.bench)
	}
	return f.of(values), values, nil
}

// one is the last value of a key that is there once.
func (r results) one(key string) (string, error) {
	values := r.about[key]
	if len(values) == 0 {
		return "", errors.New("the output has no line with its " + key + ": was it made by bench/report -out?")
	}
	return values[len(values)-1], nil
}
