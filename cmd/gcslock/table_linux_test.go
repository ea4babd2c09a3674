package main

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A scenario makes a line of the table happen for a command. which is the line's
// second column: the exit code that is wanted, the signal, or the variable.
type scenario func(s *site, which string)

// A line is one of the first table of docs/cli.md.
type line struct {
	kind, which string
	commands    []string
	what        string
}

// The kinds of lines.
const (
	kindExit       = "exit code"
	kindSignal     = "signal"
	kindSignalSent = "signal sent"
	kindVariable   = "variable"
	kindSet        = "variable set"
)

// documented is the table.
func documented(t *testing.T) []line {
	t.Helper()
	var lines []line
	for _, row := range docsTable(t, "| kind | which | commands | what |") {
		lines = append(lines, line{row[0], strings.Trim(row[1], "`"), strings.Split(row[2], ", "), row[3]})
	}
	return lines
}

// TestTable makes each line of docs/cli.md happen, for each of its commands. A
// new line needs a scenario in scenarios, under its kind, which and command.
func TestTable(t *testing.T) {
	left := scenarios()
	for _, line := range documented(t) {
		for _, command := range line.commands {
			key := line.kind + " " + line.which + ": " + command
			run, ok := left[key]
			if !ok {
				t.Errorf("docs/cli.md has %q, and scenarios_linux_test.go has no scenario for it, or docs/cli.md has it twice", key)
				continue
			}
			delete(left, key)
			t.Run(key, func(t *testing.T) { run(newSite(t), line.which) })
		}
	}
	for key := range left {
		t.Errorf("there is a scenario for %q, and no line in docs/cli.md", key)
	}
}

// TestTableHasCommands: a new command has its lines, too.
func TestTableHasCommands(t *testing.T) {
	var mentioned []string
	for _, line := range documented(t) {
		if line.kind == kindExit && line.which == strconv.Itoa(exitUsage) {
			mentioned = line.commands
		}
	}
	for _, cmd := range newRoot().Commands() {
		if !slices.Contains(mentioned, cmd.Name()) {
			t.Errorf("docs/cli.md does not have %s among the commands with exit code %d", cmd.Name(), exitUsage)
		}
	}
}

// TestTableHasExitCodes: the constants, the help and the docs have the same
// ones, and the last two the same words.
func TestTableHasExitCodes(t *testing.T) {
	docs := make(map[string]string)
	for _, line := range documented(t) {
		if line.kind == kindExit {
			docs[line.which] = line.what
		}
	}
	help := make(map[string]string)
	last := ""
	for row := range strings.SplitSeq(exitCodeTable, "\n") {
		if m := regexp.MustCompile(`^  (\d+(?:\+n)?) +(.*)`).FindStringSubmatch(row); m != nil {
			last = m[1]
			help[last] = m[2]
		} else if last != "" {
			help[last] += " " + strings.TrimSpace(row)
		}
	}
	if !maps.Equal(docs, help) {
		t.Errorf("docs/cli.md has %q, exitCodeTable %q", docs, help)
	}
	constants := make(map[string]bool)
	for name, value := range sources(t).constants {
		if strings.HasPrefix(name, "exit") && value.Kind() == constant.Int {
			code := value.ExactString()
			if name == "exitSignal" {
				code += "+n"
			}
			constants[code] = true
			if _, ok := docs[code]; !ok {
				t.Errorf("docs/cli.md does not have %s, %s", name, code)
			}
		}
	}
	for code := range docs {
		if !constants[code] {
			t.Errorf("docs/cli.md has exit code %s, and exitcodes.go has no constant for it", code)
		}
	}
}

// TestTableHasVariables that the sources read, or name for commands.
func TestTableHasVariables(t *testing.T) {
	docs := make(map[string]bool)
	for _, line := range documented(t) {
		if line.kind == kindVariable || line.kind == kindSet {
			docs[line.which] = true
		}
	}
	found := sources(t).variables
	if len(found) < 8 {
		t.Errorf("found only %q in the sources", slices.Sorted(maps.Keys(found)))
	}
	for name := range found {
		if strings.HasSuffix(name, "_") {
			name += "<command>"
		}
		if !docs[name] {
			t.Errorf("docs/cli.md does not have the variable %s", name)
		}
	}
}

// TestTableHasSignals that are caught.
func TestTableHasSignals(t *testing.T) {
	docs := make(map[string]bool)
	for _, line := range documented(t) {
		docs[line.which] = docs[line.which] || line.kind == kindSignal
	}
	found := sources(t).signals
	if len(found) < 3 {
		t.Errorf("found only %q in the sources", found)
	}
	for _, name := range found {
		if !docs[name] {
			t.Errorf("docs/cli.md does not have the signal %s", name)
		}
	}
}

// What the sources of the command have.
type source struct {
	constants map[string]constant.Value
	variables map[string]bool // of the environment
	signals   []string        // that signal.Notify is given
}

// sources reads the program's files. Package terraform names its variables to a
// function that it is given: they are found by how they begin. Another variable whose name is no literal or
// constant would be missed: it is an error.
func sources(t *testing.T) source {
	t.Helper()
	s := source{constants: make(map[string]constant.Value), variables: make(map[string]bool)}
	var names []string
	for _, pattern := range []string{"*.go", "internal/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || found == nil {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		names = append(names, found...)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, variable := range regexp.MustCompile(`\b(?:GCSLOCK|TF)_[A-Z_]+`).FindAllString(string(text), -1) {
			s.variables[variable] = true
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		ast.Inspect(file, s.addConstants)
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool { return s.addCall(t, n) })
	}
	return s
}

func (s *source) addConstants(n ast.Node) bool {
	spec, ok := n.(*ast.ValueSpec)
	if !ok {
		return true
	}
	for i, value := range spec.Values {
		if literal, ok := value.(*ast.BasicLit); ok && i < len(spec.Names) {
			s.constants[spec.Names[i].Name] = constant.MakeFromLiteral(literal.Value, literal.Kind, 0)
		}
	}
	return true
}

// addCall looks for reads of the environment, and for signals that are caught.
func (s *source) addCall(t *testing.T, n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	switch function := dotted(call.Fun); function {
	case "os.Getenv", "os.LookupEnv", "os.Unsetenv", "os.Setenv":
		switch arg := call.Args[0].(type) {
		case *ast.BasicLit:
			s.variables[constant.StringVal(constant.MakeFromLiteral(arg.Value, arg.Kind, 0))] = true
		case *ast.Ident:
			value, ok := s.constants[arg.Name]
			if !ok {
				t.Fatalf("%s(%s): the name of the variable is no constant", function, arg.Name)
			}
			s.variables[constant.StringVal(value)] = true
		default:
			t.Fatalf("%s of something that is neither a literal nor a constant", function)
		}
	case "os.TempDir":
		s.variables["TMPDIR"] = true
	case "signal.Notify", "signal.NotifyContext":
		for _, arg := range call.Args[1:] {
			name := strings.TrimPrefix(strings.TrimPrefix(dotted(arg), "syscall."), "unix.")
			s.signals = append(s.signals, strings.Replace(name, "os.Interrupt", "SIGINT", 1))
		}
	}
	return true
}

// dotted is package.Name, or empty.
func dotted(e ast.Expr) string {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := selector.X.(*ast.Ident); ok {
			return pkg.Name + "." + selector.Sel.Name
		}
	}
	return ""
}
