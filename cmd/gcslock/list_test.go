package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gcslock/gcslock/gcstest"
)

// TestList: the locks below a prefix, in order, and nothing that is none.
func TestList(t *testing.T) {
	s := newSite(t)
	kinds := map[string]string{
		"a/live": live, "a/older": olderStale, "a/stale": stale, "a/state/default.tflock": terraformOwn, "b/free": free, "a/file": foreign,
	}
	for object, kind := range kinds {
		s.put(kind, object)
	}
	s.put(live, "c/outside")
	names := []string{"a/live", "a/older", "a/stale", "a/state/default.tflock"}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"gs://jobs/a/"}, names},
		{[]string{"gs://jobs/a"}, names},
		{[]string{"gs://jobs/a/st"}, names[2:]},
		{[]string{"gs://jobs"}, append(slices.Clone(names), "c/outside")},
		{[]string{"gs://jobs/"}, append(slices.Clone(names), "c/outside")},
		{[]string{"--all", "gs://jobs/a"}, slices.Insert(slices.Clone(names), 0, "a/file")},
	} {
		code, stdout, stderr := s.run(append([]string{"list"}, tt.args...)...)
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if code != 0 || stderr != "" || len(lines) != len(tt.want)+1 || !strings.HasPrefix(lines[0], "OBJECT") {
			t.Fatalf("%q: exit code %d, stderr %q, stdout\n%s", tt.args, code, stderr, stdout)
		}
		state := strings.Index(lines[0], "STATE")
		for i, name := range tt.want {
			want := stateOfLock[kinds[name]]
			if name == "c/outside" {
				want = stateLive
			}
			if line := lines[i+1]; !strings.HasPrefix(line, name+" ") || !strings.HasPrefix(line[state:], want+" ") {
				t.Errorf("%q: line %q, want %s, %s", tt.args, line, name, want)
			}
		}
		_, stdout, _ = s.run(append([]string{"list", "--json"}, tt.args...)...)
		var got []string
		for _, r := range s.reports(stdout) {
			got = append(got, strings.TrimPrefix(fmt.Sprint(r["lock"]), "gs://jobs/"))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: JSON of %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestListNothing says so, and where: a typo in the prefix is seen.
func TestListNothing(t *testing.T) {
	s := newSite(t)
	s.put(foreign, "file")
	if code, stdout, stderr := s.run("list", "gs://jobs/x"); code != 0 || stdout != "" || stderr != "gcslock: no locks below gs://jobs/x\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if code, _, stderr := s.run("list", "gs://nowhere"); code != exitStorage || !strings.Contains(stderr, "the bucket does not exist") {
		t.Errorf("no bucket: exit code %d, stderr %q", code, stderr)
	}
}

// TestListAligns wide and unprintable names, and shows where it cuts a text off.
func TestListAligns(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"plain", "ロック", "esc\x1b[2J", "e\u0301"} {
		s.server.Put("jobs", name, gcstest.Object{Metadata: map[string]string{"owner": strings.Repeat("ö", 100), "nonce": "n", "ttl": "1m"}})
	}
	_, stdout, _ := s.run("list", "gs://jobs")
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if len(lines) != 5 {
		t.Fatalf("%q", stdout)
	}
	state := strings.Index(lines[0], "STATE")
	for _, line := range lines[1:] {
		before, after, ok := strings.Cut(line, "live")
		if !ok || columns(before) != state {
			t.Errorf("%q has its state at column %d, want %d", line, columns(before), state)
		}
		if !strings.Contains(after, " "+strings.Repeat("ö", textLimit-1)+"…  ") {
			t.Errorf("%q does not show where the owner is cut off", line)
		}
	}
}

// TestListPages: a bucket with more objects than a page has them all, for a
// request a page.
func TestListPages(t *testing.T) {
	s := newSite(t)
	for i := range 5 {
		s.put([]string{live, foreign}[i%2], fmt.Sprintf("lock%d", i))
	}
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		query.Set("maxResults", "2") // or a page has 1,000
		r.URL.RawQuery = query.Encode()
		s.server.ServeHTTP(w, r)
	}))
	t.Cleanup(pages.Close)
	s.env = []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(pages.URL, "http://")}
	_, stdout, _ := s.run("list", "gs://jobs")
	var names []string
	for line := range strings.Lines(stdout) {
		names = append(names, strings.Fields(line)[0])
	}
	if got := strings.Join(names, " "); got != "OBJECT lock0 lock2 lock4" {
		t.Errorf("lists %q", got)
	}
	if ops := s.ops(); ops != "other other other" {
		t.Errorf("requests %q", ops)
	}
	// The access control lists would need a permission of their own.
	if url := s.server.Requests()[0].URL; !strings.Contains(url, "projection=noAcl") || !strings.Contains(url, "fields=") {
		t.Errorf("asks for %s", url)
	}
}

// TestColumns: what a text takes on a terminal.
func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "lock": 4, "ロック": 6, "Ａ": 2, "ö": 1, "e\u0301": 1, "🔒": 2, "…": 1} {
		if got := columns(text); got != want {
			t.Errorf("%q takes %d, want %d", text, got, want)
		}
	}
}

// TestTablePages: what is flushed page by page stays a table.
func TestTablePages(t *testing.T) {
	var b strings.Builder
	var page table
	page.add(cell{"NAME", ""}, cell{"X", ""})
	page.add(cell{"long name", ""}, cell{"1", colourRed})
	if err := page.flush(&b, true); err != nil {
		t.Fatal(err)
	}
	page.add(cell{"short", ""}, cell{"2", ""})
	if err := page.flush(&b, false); err != nil {
		t.Fatal(err)
	}
	if want := "NAME       X\nlong name  \x1b[31m1\x1b[0m\nshort      2\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
