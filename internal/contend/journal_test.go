package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	history := func(lines ...string) []entry {
		var h []entry
		for i, line := range lines {
			f := strings.Fields(line)
			h = append(h, entry{f[0], f[1], f[2], int64(i)})
		}
		return h
	}
	for _, tt := range []struct {
		name    string
		history []entry
		want    string // in the error; empty: none
	}{
		{"good", history("begin a 1", "end a 1", "begin b 2", "end b 2"), ""},
		{"overlap", history("begin a 1", "begin b 2", "end a 1", "end b 2"), "overlap at line 1"},
		{"unended", history("begin a 1", "end a 1", "begin b 2"), "overlap at line 3"},
		{"token twice", history("begin a 1", "end a 1", "begin b 1", "end b 1"), "came twice"},
		{"a turn missing", history("begin a 1", "end a 1"), "1 processes had turns instead of 2"},
		{"a turn too many", history("begin a 1", "end a 1", "begin a 2", "end a 2"), "a had 2 turns instead of 1"},
	} {
		_, err := check(tt.history, 2, 1)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestRecord(t *testing.T) {
	t.Setenv("GCSLOCK_OWNER", "a")
	t.Setenv("GCSLOCK_TOKEN", "1")
	journal := filepath.Join(t.TempDir(), "journal")
	if err := record(journal, 0); err != nil {
		t.Fatal(err)
	}
	history, err := read(journal)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := check(history, 1, 1); err != nil || !strings.Contains(report, "no overlap in 1 sections") {
		t.Errorf("%q, %v", report, err)
	}
}
