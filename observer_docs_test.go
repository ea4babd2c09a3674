package gcslock

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is docs/observability.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows are the cells of the rows whose table has these first header cells.
func rows(t *testing.T, header ...string) [][]string {
	t.Helper()
	_, table, ok := strings.Cut(page(t), "\n| "+strings.Join(header, " | ")+" |")
	if !ok {
		t.Fatalf("no table %q", header)
	}
	var all [][]string
	for line := range strings.Lines(table) {
		switch {
		case line == "\n" && len(all) > 0:
			return all
		case strings.HasPrefix(line, "| "):
			all = append(all, strings.Split(strings.Trim(line, "| \n"), " | "))
		}
	}
	return all
}

// TestDocsListTheEvents: the page has every kind, with the fields that have been
// seen of it, and every reason.
func TestDocsListTheEvents(t *testing.T) {
	fields := map[string]map[string]bool{}
	reasons := map[string]bool{}
	for _, o := range observations {
		inWorld(t, func(t *testing.T, w *world) {
			s := &seen{}
			o.do(w, w.machine("a"), WithObserver(s))
			for _, e := range s.events {
				kind := "`" + string(e.Kind) + "`"
				if fields[kind] == nil {
					fields[kind] = map[string]bool{}
				}
				if e.Reason != "" {
					reasons["`"+string(e.Reason)+"` "+kind] = true
				}
				v := reflect.ValueOf(e)
				for i := range v.NumField() {
					if name := v.Type().Field(i).Name; !v.Field(i).IsZero() && !slices.Contains([]string{"Kind", "Bucket", "Object"}, name) {
						fields[kind][name] = true
					}
				}
			}
		})
	}
	listed := rows(t, "kind", "when", "fields, beside Kind, Bucket and Object")
	for _, row := range listed {
		if got, want := row[2], strings.Join(slices.Sorted(maps.Keys(fields[row[0]])), ", "); got != want {
			t.Errorf("%s has fields %q, the page says %q", row[0], want, got)
		}
	}
	if len(listed) != len(fields) {
		t.Errorf("%d kinds listed, %d seen", len(listed), len(fields))
	}
	var told []string
	for _, row := range rows(t, "reason", "of", "what") {
		told = append(told, row[0]+" "+row[1])
	}
	slices.Sort(told)
	if want := slices.Sorted(maps.Keys(reasons)); !slices.Equal(told, want) {
		t.Errorf("the page has reasons %q, seen %q", told, want)
	}
}

// TestDocsListTheLog: the page has every message, with its level.
func TestDocsListTheLog(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\.log\(\S+, level(\w*), "([^"]+)"`)
	levels := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllSubmatch(text, -1) {
			levels["`"+string(m[2])+"`"] = string(m[1])
		}
	}
	listed := rows(t, "message", "level", "more keys")
	for _, row := range listed {
		level, ok := levels[row[0]]
		if !ok || !strings.HasPrefix(row[1], level) {
			t.Errorf("the page has %s at %s, the code at %q", row[0], row[1], level)
		}
	}
	if len(listed) != len(levels) || len(levels) == 0 {
		t.Errorf("%d messages listed, %d in the code", len(listed), len(levels))
	}
}
