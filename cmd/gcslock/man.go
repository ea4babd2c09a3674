package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the man pages",
		Long: `Writes a man page for each command, gcslock.1, gcslock-run.1 and so on, into the
directory, which is made if it is not there. The same program always writes the
same pages.`,
		Example: `  gcslock man ~/.local/share/man/man1 && man gcslock-run`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeMan(cmd.Root(), args[0])
		},
	}
}

// writeMan writes the pages of a command and of those below it. cobra's own
// package for this is not used: the Markdown parser that it brings would be set
// up at every start of gcslock run.
func writeMan(cmd *cobra.Command, directory string) error {
	if err := os.WriteFile(filepath.Join(directory, manName(cmd)+".1"), []byte(manPage(cmd)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeMan(sub, directory); err != nil {
				return err
			}
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is in the macros of man(7). It has no date: that of the build would
// make two builds of the same source differ.
func manPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" gcslock gcslock\n", roff(strings.ToUpper(manName(cmd))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", manText(long))
	b.WriteString(".SH OPTIONS\n")
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			b.WriteString(manFlag(flag))
		}
	})
	if cmd.HasExample() {
		fmt.Fprintf(&b, ".SH EXAMPLES\n%s", manText(cmd.Example))
	}
	if others := manOthers(cmd); len(others) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
	}
	return b.String()
}

// manText has paragraphs filled, and what is indented left as it is.
func manText(text string) string {
	var b strings.Builder
	literal := false
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		if indented != literal && line != "" {
			b.WriteString(map[bool]string{true: ".RS 2\n.nf\n", false: ".fi\n.RE\n"}[indented])
			literal = indented
		}
		switch {
		case line == "" && literal:
			b.WriteString(".sp\n")
		case line == "":
			b.WriteString(".PP\n")
		default:
			// cobra's own texts have headings of Markdown.
			b.WriteString(roff(strings.TrimPrefix(strings.TrimPrefix(line, "  "), "#### ")) + "\n")
		}
	}
	if literal {
		b.WriteString(".fi\n.RE\n")
	}
	return b.String()
}

// manFlag is a flag as --help has it: what it takes, what for, and the default.
func manFlag(flag *pflag.Flag) string {
	takes, usage := pflag.UnquoteUsage(flag)
	name := `\-\-` + roff(flag.Name)
	if flag.Shorthand != "" {
		name = `\-` + roff(flag.Shorthand) + ", " + name
	}
	if takes != "" {
		name += " " + roff(takes)
	}
	if d := flag.DefValue; d != "" && d != "false" && d != "[]" && d != "0" && d != "0s" {
		usage += " (default " + d + ")"
	}
	return ".TP\n.B " + name + "\n" + roff(usage) + "\n"
}

// manOthers are the pages next to a command's in the tree.
func manOthers(cmd *cobra.Command) []string {
	var others []string
	if cmd.HasParent() {
		others = append(others, manRef(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			others = append(others, manRef(sub))
		}
	}
	return others
}

func manRef(cmd *cobra.Command) string { return ".BR " + roff(manName(cmd)) + " (1)" }

// roff is a line of text as roff prints it. Minus signs are for copying from a
// page, and a line that begins like a request is none.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
