package main

import "fmt"

// contended is the name of a contest's benchmark.
func contended(workers int, delay, processes, quota string) string {
	return fmt.Sprintf("Contended/workers=%d/delay=%s/processes=%s/quota=%s", workers, delay, processes, quota)
}

// rateLimited is the same for one change a second.
func rateLimited(processes, quota string) string {
	return "RateLimited/workers=8/delay=0s/processes=" + processes + "/quota=" + quota
}

func tables() []table {
	return []table{cycleTable(), contendedTable(), fairnessTable(), limitedTable(), handoffTable(), crashTable(), manyTable(), runTable()}
}

func cycleTable() table {
	return table{"cycle", [][2]string{
		{"acquire and release", "Cycle/delay=0s"},
		{"acquire and release, 20 ms added", "Cycle/delay=20ms"},
		{"acquire and release, over requests alike", "CycleAlike"},
		{"refresh", "Refresh/delay=0s"},
		{"refresh, 20 ms added", "Refresh/delay=20ms"},
		{"refresh, over a request alike", "RefreshAlike"},
	}, []column{
		{"requests", "requests/op", median}, {"time / floor", "time/floor", median}, {"CPU / floor", "cpu/floor", median},
		{"bytes / floor", "bytes/floor", median}, {"allocations / floor", "allocs/floor", median},
		{"floor: CPU, µs", "floor-cpu-us", median}, {"floor: bytes", "floor-B", median}, {"floor: allocations", "floor-allocs", median},
	}}
}

var gapColumns = []column{
	{"gap: median, ms", "gap-median-ms", median}, {"p95, ms", "gap-p95-ms", median}, {"worst, ms", "gap-worst-ms", most},
}

var requestColumns = []column{
	{"requests / section", "requests/section", median}, {"reads", "reads/section", median},
	{"creates", "creates/section", median}, {"deletes", "deletes/section", median},
}

// contests gives a row to each contest of these quotas.
func contests(quotas ...string) (rows [][2]string) {
	for _, workers := range []int{2, 8, 64} {
		for _, delay := range []string{"0s", "20ms"} {
			if delay != "0s" && workers != 8 {
				continue
			}
			for _, processes := range []string{"one", "many"} {
				for _, quota := range quotas {
					title := fmt.Sprintf("%d, %s", workers, map[string]string{"one": "one process", "many": "a process each"}[processes])
					if quota == "free" && len(quotas) > 1 {
						title += ", free"
					}
					if delay != "0s" {
						title += ", 20 ms added"
					}
					rows = append(rows, [2]string{title, contended(workers, delay, processes, quota)})
				}
			}
		}
	}
	return rows
}

func contendedTable() table {
	columns := append([]column{{"gap's floor, ms", "gap-floor-ms", median}}, gapColumns...)
	return table{"contended", contests("equal", "free"), append(columns, requestColumns...)}
}

func fairnessTable() table {
	rows := append(contests("free"), [2]string{"8, a process each, one change a second", rateLimited("many", "free")})
	return table{"fairness", rows, []column{
		{"fewest turns", "fewest-turns", least}, {"most turns", "most-turns", most}, {"Jain's index", "jain", median}}}
}

func limitedTable() table {
	return table{"limited", [][2]string{
		{"8, one process", rateLimited("one", "equal")},
		{"8, a process each", rateLimited("many", "equal")},
		{"8, a process each, free", rateLimited("many", "free")},
	}, append([]column{{"sections / allowed", "of-allowed", median}, {"gap: median, ms", "gap-median-ms", median},
		{"worst, ms", "gap-worst-ms", most}}, requestColumns...)}
}

func handoffTable() table {
	columns := append([]column{{"gap's floor, ms", "gap-floor-ms", median}}, gapColumns...)
	return table{"handoff", [][2]string{
		{"off", "Handoff/handoffs=0"}, {"10 in a row", "Handoff/handoffs=10"}, {"100 in a row", "Handoff/handoffs=100"},
	}, append(columns, requestColumns...)}
}

func crashTable() table {
	return table{"crash", [][2]string{
		{"waiter was there before", "Crash/waiter=before"},
		{"waiter came after", "Crash/waiter=after"},
	}, []column{
		{"after expiry: median, s", "after-expiry-median-s", median}, {"worst, s", "after-expiry-worst-s", most},
		{"after it was provable: median, s", "after-proof-median-s", median}, {"worst, s", "after-proof-worst-s", most},
		{"reads / s", "reads/s", median}, {"requests / takeover", "requests/takeover", median},
	}}
}

func manyTable() table {
	return table{"many", [][2]string{
		{"1 lease", "Many/leases=1"}, {"1,000 leases", "Many/leases=1000"}, {"10,000 leases", "Many/leases=10000"},
	}, []column{
		{"goroutines / lease", "goroutines/lease", median}, {"heap and stack, B / lease", "B/lease", median},
		{"after 90 s, B / lease", "B/lease-later", median}, {"CPU / refresh, µs", "cpu-us/refresh", median},
		{"p99 lateness / ttl", "p99-late/ttl", median}, {"most in a second / mean", "peak/mean", median},
	}}
}

func runTable() table {
	return table{"program", [][2]string{{"gcslock run -- true", "Run"}}, []column{
		{"beyond the floor, ms", "beyond-ms", median}, {"floor, ms", "floor-ms", median},
		{"time / floor", "time/floor", median}, {"size, MB", "MB", median}}}
}
