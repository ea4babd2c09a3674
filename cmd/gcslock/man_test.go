package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestMan: each command has its page, with all that --help has, and two
// processes write the same.
func TestMan(t *testing.T) {
	s := newSite(t)
	directory, again := filepath.Join(t.TempDir(), "new", "man1"), t.TempDir()
	for _, d := range []string{directory, again} {
		if code, stdout, stderr := s.run("man", d); code != 0 || stdout+stderr != "" {
			t.Fatalf("exit code %d, says %q", code, stdout+stderr)
		}
	}
	pages := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		pages++
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		if other, err := os.ReadFile(filepath.Join(again, name)); err != nil || string(other) != string(text) {
			t.Errorf("another process writes another %s (%v)", name, err)
		}
		page := strings.ReplaceAll(string(text), `\-`, "-")
		wants := []string{".SH NAME\n", ".SH SYNOPSIS\n.B " + cmd.UseLine(), ".SH DESCRIPTION\n", ".SH OPTIONS\n", ".SH SEE ALSO\n", cmd.Short}
		if cmd.HasExample() {
			wants = append(wants, ".SH EXAMPLES\n.RS 2\n.nf\n")
		}
		if strings.Contains(cmd.Long, "Exit codes:") {
			wants = append(wants, "Exit codes:\n.RS 2\n.nf\n0      done;", "128+n  run, terraform:")
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { wants = append(wants, "--"+f.Name) })
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not have %q", name, want)
			}
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	root := newRoot()
	root.InitDefaultCompletionCmd()
	check(root)
	if files, err := os.ReadDir(directory); err != nil || len(files) != pages || pages < 10 {
		t.Errorf("%d files for %d commands, %v", len(files), pages, err)
	}
	if text, err := os.ReadFile(filepath.Join(directory, "gcslock-status.1")); err != nil || !strings.Contains(string(text), `as run \-\-emulator does`) {
		t.Errorf("a flag's text is not as roff wants it (%v)", err)
	}
	lintMan(t, directory)
}

// lintMan has groff find what it does not understand, where that is installed.
func lintMan(t *testing.T, directory string) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("groff is not installed: the pages' macros are not checked")
		return
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", file)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %s (%v)", file, out, err)
		}
	}
}

// TestManText: nothing in a text is taken for a request to roff.
func TestManText(t *testing.T) {
	const text = ".a 'b\n'c\\d --e\n\n  code\n    more\n\n  .x\nlast"
	const want = "\\&.a 'b\n\\&'c\\ed \\-\\-e\n.PP\n.RS 2\n.nf\ncode\n  more\n.sp\n\\&.x\n.fi\n.RE\nlast\n"
	if got := manText(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCompletion offers what an argument begins with, and files only where one
// is wanted.
func TestCompletion(t *testing.T) {
	const noFiles, files, directories, noFilesNoSpace = ":4\n", ":0\n", ":16\n", "gs://\n:6\n"
	for args, want := range map[string]string{
		"status |":                          noFilesNoSpace,
		"list gs|":                          noFilesNoSpace,
		"watch |":                           noFilesNoSpace,
		"break |":                           noFilesNoSpace,
		"break gs://a/b |":                  noFiles,
		"break --id |":                      noFiles,
		"run |":                             noFilesNoSpace,
		"run gs://a/b -- |":                 files,
		"run gs://a/b -- cat |":             files,
		"run --payload |":                   files,
		"check |":                           noFilesNoSpace,
		"check gs://a/b |":                  noFiles,
		"terraform |":                       noFilesNoSpace,
		"terraform gs://a/b -- terraform |": files,
		"terraform --workspace |":           noFiles,
		"run --owner |":                     noFiles,
		"man |":                             directories,
		"emulator |":                        noFiles,
	} {
		t.Run(args, func(t *testing.T) {
			s := newSite(t)
			words := strings.Split(strings.TrimSuffix(args, "|"), " ")
			code, stdout, _ := s.run(append([]string{"__complete"}, words...)...)
			if code != 0 || stdout != want {
				t.Errorf("exit code %d, offers %q, want %q", code, stdout, want)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		s := newSiteOf(t)
		if code, stdout, _ := s.run("completion", shell); code != 0 || !strings.Contains(stdout, "gcslock") {
			t.Errorf("%s: exit code %d, %d bytes", shell, code, len(stdout))
		}
	}
}
