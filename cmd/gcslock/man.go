package main

import (
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the man pages",
		Long: `Writes a man page for each command, gcslock.1, gcslock-run.1 and so on, into the
directory, which is made if it is not there. They are the same for the same
program, whenever and wherever it writes them.`,
		Example: `  gcslock man ~/.local/share/man/man1 && man gcslock-run`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			forMan(cmd.Root())
			date := manDate()
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Section: "1", Date: &date, Source: "gcslock", Manual: "gcslock"}, args[0])
		},
	}
}

// manDate is that of the commit that the program was built from, and else, in a
// build that does not know it, that of the first man page.
func manDate() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if date, err := time.Parse(time.RFC3339, setting.Value); err == nil && setting.Key == "vcs.time" {
				return date
			}
		}
	}
	return time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
}

// forMan makes of the help texts of a command and those below it what the man
// pages want: Markdown, in which a table is one as long as it is indented by
// four.
func forMan(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	lines := strings.Split(cmd.Long, "\n")
	var out []string
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			if i > 0 && lines[i-1] != "" && !strings.HasPrefix(lines[i-1], "  ") {
				out = append(out, "")
			}
			line = "  " + line
		}
		out = append(out, line)
	}
	cmd.Long = strings.Join(out, "\n")
	for _, sub := range cmd.Commands() {
		forMan(sub)
	}
}
