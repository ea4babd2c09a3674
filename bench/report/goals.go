package main

import (
	"errors"
	"fmt"
	"strings"
)

// A goal is a limit that a figure should keep.
type goal struct {
	what  string
	limit float64
	least bool   // the figure should be at least the limit; else at most
	unit  string // of the limit, for people
	figure
}

func goals() []goal {
	eight, free := contended(8, "0s", "many", "equal"), contended(8, "0s", "many", "free")
	at := func(what string, limit float64, unit, bench, of string) goal {
		return goal{what, limit, false, unit, figure{bench, of, median}}
	}
	return []goal{
		at("uncontended: requests", 2, "", "Cycle/delay=0s", "requests/op"),
		at("time over the floor", 1.03, "", "Cycle/delay=0s", "time/floor"),
		at("time over the floor, 20 ms added", 1.03, "", "Cycle/delay=20ms", "time/floor"),
		at("CPU over the floor", 1, "", "Cycle/delay=0s", "cpu/floor"),
		at("bytes over the floor", 1, "", "Cycle/delay=0s", "bytes/floor"),
		at("refresh: requests", 1, "", "Refresh/delay=0s", "requests/op"),
		at("CPU over a bare update", 1, "", "Refresh/delay=0s", "cpu/floor"),
		at("contended, 8 processes: gap, median", 35, "ms", eight, "gap-median-ms"),
		at("gap, p95", 150, "ms", eight, "gap-p95-ms"),
		{"gap, worst", 1000, false, "ms", figure{eight, "gap-worst-ms", most}},
		at("requests a section", 5, "", eight, "requests/section"),
		// Of 40 sections a share is 5.
		{"free-for-all: fewest turns, a third of a share", 5. / 3, true, "", figure{free, "fewest-turns", least}},
		{"one change a second: of what is allowed", 0.95, true, "", figure{rateLimited("many", "equal"), "of-allowed", median}},
		at("requests a section", 10, "", rateLimited("many", "equal"), "requests/section"),
		at("after a crash, waiter present: after it was provably stale, median", 0.6, "s", "Crash/waiter=before", "after-proof-median-s"),
		at("reads a second", 1, "", "Crash/waiter=before", "reads/s"),
		at("10,000 leases: goroutines each", 1, "", "Many/leases=10000", "goroutines/lease"),
		at("heap and stack each", 4096, "B", "Many/leases=10000", "B/lease"),
		at("p99 lateness, of the ttl", 0.02, "", "Many/leases=10000", "p99-late/ttl"),
		at("most in a second, over the mean", 1.5, "", "Many/leases=10000", "peak/mean"),
		at("gcslock run: beyond the requests and the command", 50, "ms", "Run", "beyond-ms"),
	}
}

func (g goal) met(value float64) bool {
	if g.least {
		return value >= g.limit
	}
	return value <= g.limit
}

func goalTable(r results) (string, error) {
	var b strings.Builder
	var problems []error
	b.WriteString("| | goal | measured | |\n|---|---:|---:|---|\n")
	for _, g := range goals() {
		value, runs, err := r.get(g.figure)
		problems = append(problems, err)
		word, verdict := "at most", "**not met**"
		if g.least {
			word = "at least"
		}
		if g.met(value) {
			verdict = "met"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.what, strings.TrimSpace(fmt.Sprintf("%s %s %s", word, number(g.limit), g.unit)),
			cell(value, runs), verdict)
	}
	return b.String(), errors.Join(problems...)
}
