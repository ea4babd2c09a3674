package gcslock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// documents are the project's own pages.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := make(map[string]string)
	for _, path := range append(paths, "README.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[path] = string(text)
	}
	return pages
}

// TestDocsNameRealTests: the pages hold the tests up as evidence.
func TestDocsNameRealTests(t *testing.T) {
	var exist []string
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					exist = append(exist, f.Name.Name)
				}
			}
		}
	}
	named := 0
	for path, text := range documents(t) {
		text = goBlock.ReplaceAllString(text, "") // the reader's own tests
		for _, name := range regexp.MustCompile(`\b(?:Test|Example|Fuzz|Benchmark)[A-Z]\w*`).FindAllString(text, -1) {
			named++
			if !slices.Contains(exist, name) {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
	if named == 0 {
		t.Error("no page names a test: is the expression right?")
	}
}

// TestDocsLinks: a link within the project leads to a file.
func TestDocsLinks(t *testing.T) {
	for path, text := range documents(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), link[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, link[1], err)
			}
		}
	}
}

// TestDocsCompile: the Go programs on the pages are programs.
func TestDocsCompile(t *testing.T) {
	programs := 0
	for path, text := range documents(t) {
		for _, block := range goBlock.FindAllStringSubmatch(text, -1) {
			programs++
			file := filepath.Join(t.TempDir(), "page_test.go")
			if strings.Contains(block[1], "package main\n") {
				file = filepath.Join(filepath.Dir(file), "main.go")
			}
			if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", path, err, out, block[1])
			}
		}
	}
	if programs == 0 {
		t.Error("no page has a program: is the expression right?")
	}
}
