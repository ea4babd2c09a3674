package main

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// write makes the page and its charts, or writes nothing.
func write(r results, docs string) error {
	path := filepath.Join(docs, "performance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, files := string(page), map[string]string{}
	var problems []error
	for _, block := range blocks() {
		content, err := block.text(r)
		problems = append(problems, err)
		text, err = replace(text, block.name, content)
		problems = append(problems, err)
	}
	for _, c := range charts() {
		svg, err := c.draw(r)
		problems = append(problems, err)
		files[filepath.Join(docs, "performance", c.name+".svg")] = svg
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(docs, "performance"), 0o755); err != nil {
		return err
	}
	files[path] = text
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replace puts the content between the block's markers.
func replace(page, name, content string) (string, error) {
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return page, fmt.Errorf("performance.md has no %q with an %q after it", strings.TrimSpace(begin), end)
	}
	return head + begin + "\n" + content + "\n" + end + tail, nil
}

// A block is a part of the page that is made.
type block struct {
	name string
	text func(results) (string, error)
}

func blocks() []block {
	all := []block{{"run", about}, {"goals", goalTable}}
	for _, t := range tables() {
		all = append(all, block{t.name, t.text})
	}
	return all
}

// about tells of what and with what the figures were made.
func about(r results) (string, error) {
	values := map[string]string{}
	var problems []error
	for _, key := range []string{"date", "revision", "go", "cpus", "cpu", "took"} {
		var err error
		values[key], err = r.one(key)
		problems = append(problems, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, revision %s, %s, %s CPUs (%s)", values["date"], values["revision"], values["go"],
		values["cpus"], html.EscapeString(values["cpu"]))
	if load, err := r.one("load"); err == nil {
		fmt.Fprintf(&b, ", load average %s before the run", load)
	}
	fmt.Fprintf(&b, ". In %s, by:\n\n", values["took"])
	for _, c := range r.about["command"] {
		fmt.Fprintf(&b, "    %s\n", c)
	}
	return b.String(), errors.Join(problems...)
}

// A table has a benchmark in each row and a unit in each column.
type table struct {
	name    string
	rows    [][2]string // title, and the benchmark's name
	columns []column
}

type column struct {
	title, unit string
	of          func([]float64) float64
}

func (t table) text(r results) (string, error) {
	var b strings.Builder
	var problems []error
	for _, c := range charts() {
		if c.table == t.name {
			fmt.Fprintf(&b, "![%s: %s, as bars](performance/%s.svg)\n\n", c.title, c.axis, c.name)
		}
	}
	b.WriteString("| |")
	for _, c := range t.columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(t.columns)) + "\n")
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |", row[0])
		for _, c := range t.columns {
			value, runs, err := r.get(figure{row[1], c.unit, c.of})
			problems = append(problems, err)
			fmt.Fprintf(&b, " %s |", cell(value, runs))
		}
		b.WriteString("\n")
	}
	return b.String(), errors.Join(problems...)
}

// cell is the figure, and where there were several runs, from where to where
// they went.
func cell(value float64, runs []float64) string {
	if len(runs) < 2 || number(least(runs)) == number(most(runs)) {
		return number(value)
	}
	return fmt.Sprintf("%s (%s–%s)", number(value), number(least(runs)), number(most(runs)))
}

// number has as many digits as a reader can use: three.
func number(v float64) string {
	switch {
	case v >= 99.95 || v <= -99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995 || v <= -9.995:
		return trim(fmt.Sprintf("%.1f", v))
	}
	return trim(fmt.Sprintf("%.2f", v))
}

func trim(s string) string {
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}
