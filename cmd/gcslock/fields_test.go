package main

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
)

// TestFields: docs/cli.md has the fields that the commands write, each where it
// says, and no others.
func TestFields(t *testing.T) {
	docs := make(map[string][]string) // command -> fields
	for _, row := range docsTable(t, "| field | in | what |") {
		in := strings.Split(row[1], ", ")
		if row[1] == "all" {
			in = lookCommands
		}
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[0], -1) {
			for _, command := range in {
				docs[command] = append(docs[command], name[1])
			}
		}
		if row[0] == "`terraform`" {
			want := fieldsOf(reflect.TypeFor[terraform.LockInfo]())
			if got := regexp.MustCompile("`([a-z_]+)`").FindAllString(strings.SplitN(row[2], ", as it", 2)[0], -1); strings.Join(got, " ") != "`"+strings.Join(want, "` `")+"`" {
				t.Errorf("terraform has %q, the docs %q", want, got)
			}
		}
	}
	written := make(map[string]map[string]bool)
	for _, kind := range []string{live, foreign} {
		for _, command := range lookCommands {
			if written[command] == nil {
				written[command] = make(map[string]bool)
			}
			for _, r := range jsonOf(t, command, kind) {
				for name := range r {
					written[command][name] = true
				}
			}
		}
	}
	for _, command := range lookCommands {
		got := slices.Sorted(maps.Keys(written[command]))
		if want := slices.Sorted(slices.Values(docs[command])); !slices.Equal(got, want) {
			t.Errorf("%s writes %q, docs/cli.md has %q", command, got, want)
		}
	}
	// What no lock of this test has would be missed here.
	all := fieldsOf(reflect.TypeFor[change]())
	for _, name := range all {
		if !slices.Contains(docs["watch"], name) && !slices.Contains(docs["status"], name) && !slices.Contains(docs["break"], name) {
			t.Errorf("docs/cli.md does not have %s", name)
		}
	}
}

// docsTable is the cells of the table in docs/cli.md with this head.
func docsTable(t *testing.T, head string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), head+"\n")
	if !ok {
		t.Fatalf("docs/cli.md has no table with the head %q", head)
	}
	var rows [][]string
	for row := range strings.SplitSeq(after, "\n") {
		if row == "" {
			break
		}
		if !strings.HasPrefix(row, "|---") {
			rows = append(rows, strings.Split(strings.Trim(row, "| "), " | "))
		}
	}
	return rows
}

// jsonOf is what a command writes of such a lock, which has all that a lock can
// have, and for watch of all that can become of it.
func jsonOf(t *testing.T, command, kind string) []map[string]any {
	s := newSiteOf(t)
	const object = "p/default.tflock"
	id := s.put(kind, object)
	o, _ := s.server.Object("jobs", object)
	o.Content, o.ContentType = []byte(`{"ID":"x","Who":"jo"}`), "application/json"
	if o.Metadata == nil {
		o.Metadata = map[string]string{"team": "billing"}
	}
	put := func() { id = generationText(s.server.Put("jobs", object, o).Generation) }
	put()
	url := "gs://jobs/" + object
	switch command {
	case "watch":
		p := s.start("watch", "--every", "100ms", "--json", url)
		lines := []string{p.stdout.line()}
		s.server.Edit("jobs", object, map[string]string{"team": "x"})
		lines = append(lines, p.stdout.line())
		put()
		return s.reports(strings.Join(append(lines, p.stdout.line()), "\n"))
	case "break":
		_, refused, _ := s.run("break", "--json", url, "--id", id)
		_, broken, _ := s.run("break", "--json", url, "--id", id, "--force")
		return s.reports(refused + broken)
	case "list":
		url = "gs://jobs"
	}
	_, stdout, _ := s.run(command, "--json", url)
	return s.reports(stdout)
}

// fieldsOf are the names that a struct has in JSON.
func fieldsOf(structure reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(structure) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}
