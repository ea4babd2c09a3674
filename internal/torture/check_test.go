package main

import (
	"strings"
	"testing"
)

// judgeText checks a journal whose lines have no mark.
func judgeText(t *testing.T, workers int, text string) (figures, string) {
	t.Helper()
	var b strings.Builder
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			b.WriteString(mark + l + "\n")
		}
	}
	lines, torn, err := parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	sum, found := check(lines, torn, workers)
	return sum, strings.Join(found, "\n")
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name    string
		workers int
		want    string // in what is found; empty: nothing is
		journal string
	}{
		{"one after the other", 2, "", `
			10 begin 1/1 7 40
			15 work 1/1 7 45
			20 end 1/1 7 45
			21 begin 2/1 8 50
			30 end 2/1 8 50`},
		{"overlap", 2, "two leases were valid at once, for 5ns", `
			10 begin 1/1 7 40
			15 begin 2/1 8 50
			20 end 1/1 7 40
			30 end 2/1 8 50`},
		{"overlap of lines that were written late", 2, "two leases were valid at once", `
			15 begin 2/1 8 50
			30 end 2/1 8 50
			10 begin 1/1 7 40
			20 end 1/1 7 40`},
		{"overlap with one before the last", 3, "end 1/1 7 40\n\t20 begin 3/1 9 60", `
			10 begin 1/1 7 40
			12 begin 2/1 8 13
			14 lost 2/1 8 13
			20 begin 3/1 9 60
			30 end 3/1 9 60
			35 end 1/1 7 40`},
		{"stopped until after its expiry", 2, "", `
			10 begin 1/1 7 40
			11 paused 1/1 0 0
			41 begin 2/1 8 80
			50 end 2/1 8 80
			60 resumed 1/1 0 0
			61 lost 1/1 7 40`},
		{"stopped, and taken before its expiry", 2, "two leases were valid at once, for 1ns", `
			10 begin 1/1 7 40
			11 paused 1/1 0 0
			39 begin 2/1 8 80
			50 end 2/1 8 80
			60 resumed 1/1 0 0
			61 lost 1/1 7 40`},
		{"stopped, and taken before the expiry of its last refresh", 2, "two leases were valid at once", `
			10 begin 1/1 7 20
			11 work 1/1 7 40
			30 begin 2/1 8 80
			50 end 2/1 8 80
			61 lost 1/1 7 40`},
		{"valid after its expiry, when another was", 2, "two leases were valid at once", `
			10 begin 1/1 7 40
			41 begin 2/1 8 80
			50 end 2/1 8 80
			60 work 1/1 7 40
			61 lost 1/1 7 40`},
		{"killed, and taken at once by its successor", 1, "", `
			10 begin 1/1 7 40
			12 killed 1/1 0 0
			13 begin 1/2 8 50
			14 end 1/2 8 50`},
		{"taken before the kill", 2, "two leases were valid at once", `
			10 begin 1/1 7 40
			12 begin 2/1 8 50
			12 end 2/1 8 50
			14 killed 1/1 0 0`},
		{"the log ends in a section", 2, "two leases were valid at once", `
			10 begin 1/1 7 40
			12 begin 2/1 8 50
			13 end 2/1 8 50`},
		{"work after the loss", 1, "token 7 goes on after its loss", `
			10 begin 1/1 7 40
			41 lost 1/1 7 40
			42 work 1/1 7 60`},
		{"begin after the loss", 1, "token 7 goes on after its loss", `
			9 lost 1/1 7 8
			10 begin 1/1 7 40
			11 end 1/1 7 40`},
		{"work after the end", 1, "token 7 goes on outside of its section", `
			10 begin 1/1 7 40
			11 end 1/1 7 40
			12 work 1/1 7 40`},
		{"lost too early", 1, "token 7 was lost 10ns before it expired", `
			10 begin 1/1 7 40
			30 lost 1/1 7 40`},
		{"lost too early, by the release", 1, "token 7 was lost 10ns before it expired", `
			10 begin 1/1 7 40
			20 end 1/1 7 40
			30 lost 1/1 7 40`},
		{"lost in a long release", 1, "", `
			10 begin 1/1 7 40
			20 end 1/1 7 40
			50 lost 1/1 7 40`},
		{"taken in a long release", 2, "", `
			10 begin 1/1 7 40
			20 end 1/1 7 40
			25 begin 2/1 8 60
			26 end 2/1 8 60
			50 lost 1/1 7 40`},
		{"token twice", 2, "token 7 came twice", `
			10 begin 1/1 7 40
			11 end 1/1 7 40
			20 begin 2/1 7 50
			21 end 2/1 7 50`},
		{"token twice in one process", 1, "token 7 came twice", `
			10 begin 1/1 7 40
			11 end 1/1 7 40
			20 begin 1/1 7 50
			21 end 1/1 7 50`},
		{"token of another process", 2, "token 7 came twice", `
			10 begin 1/1 7 40
			11 work 2/1 7 40
			12 end 1/1 7 40`},
		{"starved", 2, "worker 2 had no section", `
			10 begin 1/1 7 40
			11 end 1/1 7 40`},
		{"a worker's complaint", 1, "1 7 0 the release", `
			10 begin 1/1 7 40
			11 end 1/1 7 40
			12 wrong 1/1 7 0 the release did not tell`},
		{"no known kind", 1, "no known kind", `
			10 begin 1/1 7 40
			11 end 1/1 7 40
			12 rested 1/1 7 0`},
		{"torn by a kill", 1, "", `
			10 begin 1/1 7 40
			11 wo@12 killed 1/1 0 0`},
		{"torn by nothing", 1, "1 torn lines", `
			10 begin 1/1 7 40
			11 wo@12 end 1/1 7 40`},
	} {
		_, found := judgeText(t, tt.workers, tt.journal)
		if tt.want == "" && found != "" || !strings.Contains(found, tt.want) {
			t.Errorf("%s: found %q, want %q", tt.name, found, tt.want)
		}
	}
}

func TestFigures(t *testing.T) {
	sum, found := judgeText(t, 2, `
		10 begin 1/1 1 40
		12 paused 1/1 0 0
		12 paused 2/1 0 0
		13 resumed 1/1 0 0
		14 killed 1/1 0 0
		14 killed 2/1 0 0
		20 restarted emulator 0 0 1s
		21 takeover 2/2 1 0
		22 begin 2/2 2 60
		23 cut 2/2 0 0 3s
		61 lost 2/2 2 60
		70 begin 1/2 3 90
		71 end 1/2 3 90
		72 unreleased 1/2 3 0 no answer`)
	want := figures{
		sections: 3, kills: 2, killedHolding: 1, pauses: 2, pausedHolding: 1, cuts: 1, restarts: 1,
		takeovers: 1, lost: 1, unreleased: 1, fewest: 1, most: 2, longest: 38,
	}
	if sum != want || found != "" {
		t.Errorf("%+v, want %+v; found %q", sum, want, found)
	}
}
