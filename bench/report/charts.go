package main

import "errors"

// A chart shows a unit, or several, of some benchmarks as bars.
type chart struct {
	name, table, title, axis string      // table: the one that it stands above
	rows                     [][2]string // title, and the benchmark's name
	series                   []column
	mark                     float64 // a line at this value; 0: none
	markTitle                string
}

func charts() []chart {
	return []chart{
		{"cycle", "cycle", "What it takes, over the floor", "ratio to the floor of the same run", cycleTable().rows, []column{
			{"time", "time/floor", median}, {"CPU", "cpu/floor", median}, {"bytes", "bytes/floor", median},
			{"allocations", "allocs/floor", median}}, 1, "the floor"},
		{"gaps", "contended", "From one section to the next, equal quotas", "gap in milliseconds", contests("equal"), []column{
			{"floor", "gap-floor-ms", median}, {"median", "gap-median-ms", median}, {"p95", "gap-p95-ms", median}}, 0, ""},
		{"requests", "contended", "Requests for each section, equal quotas", "requests", contests("equal"), []column{
			{"creates", "creates/section", median}, {"deletes", "deletes/section", median},
			{"reads", "reads/section", median}}, 0, ""},
		{"handoff", "handoff", "1,000 goroutines that pass the lock on", "requests for each section", handoffTable().rows, []column{
			{"creates", "creates/section", median}, {"deletes", "deletes/section", median},
			{"reads", "reads/section", median}}, 0, ""},
		{"crash", "crash", "After a crash", "seconds from expiry to acquisition", crashTable().rows, []column{
			{"median", "after-expiry-median-s", median}, {"worst", "after-expiry-worst-s", most}}, 0, ""},
		{"many", "many", "Many leases in one process", "heap and stack, bytes for each lease", manyTable().rows[1:], []column{
			{"when acquired", "B/lease", median}, {"after 90 s", "B/lease-later", median}}, 4096, "goal"},
	}
}

func (c chart) draw(r results) (string, error) {
	bars := make([]bars, len(c.rows))
	var problems []error
	for i, row := range c.rows {
		bars[i].title = row[0]
		for _, s := range c.series {
			value, _, err := r.get(figure{row[1], s.unit, s.of})
			problems = append(problems, err)
			bars[i].values = append(bars[i].values, value)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return "", err
	}
	return c.svg(bars), nil
}
