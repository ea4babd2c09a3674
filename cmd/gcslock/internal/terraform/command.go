// Package terraform knows of Terraform, and of OpenTofu, which is the same in
// all of this, what it takes to hold the state lock of their gcs backend in their
// place: which commands lock, which state a directory has, and what a lock
// object says.
package terraform

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gcslock/gcslock/internal/shell"
)

// operations are the commands that lock the state and can be told not to, by
// -lock=false, and the name that Terraform has for each in its lock information.
// For import that is OperationTypeInvalid, which tells nobody anything.
//
// Not among them are commands that lock for a moment only, or for another state:
// init, workspace new, workspace delete; and console, which Terraform can't be
// told not to lock. They go on with their own locking. So does a command that is
// not known here yet, and that is safe.
var operations = map[string]string{
	"apply":                  "OperationTypeApply",
	"destroy":                "OperationTypeApply",
	"import":                 "import",
	"plan":                   "OperationTypePlan",
	"refresh":                "OperationTypeRefresh",
	"state move":             "state-mv", // OpenTofu's other name
	"state mv":               "state-mv",
	"state push":             "state-push",
	"state remove":           "state-rm", // OpenTofu's other name
	"state replace-provider": "state-replace-provider",
	"state rm":               "state-rm",
	"taint":                  "taint",
	"untaint":                "untaint",
}

// A Command is a command line of terraform or tofu.
type Command struct {
	// Program is its first word.
	Program string
	// Name is the subcommand, such as "state mv", and empty if there is none.
	Name string

	chdir string   // the argument of -chdir
	args  []string // all after the program
}

// Parse takes a command line apart as the programs do: flags that precede the
// subcommand are global, and -chdir counts only there.
func Parse(argv []string) Command {
	c := Command{Program: argv[0], args: argv[1:]}
	words := c.args
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if directory, ok := strings.CutPrefix(words[0], "-chdir="); ok {
			c.chdir = directory
		}
		words = words[1:]
	}
	if len(words) > 0 {
		c.Name = words[0]
	}
	if len(words) > 1 && operations[words[0]+" "+words[1]] != "" {
		c.Name = words[0] + " " + words[1]
	}
	return c
}

// Operation is Terraform's name for what the command does, where it locks the
// state for that.
func (c Command) Operation() (name string, locks bool) {
	// Anywhere on the line these have the program print something and end.
	for _, flag := range []string{"-h", "-help", "--help", "-v", "-version", "--version"} {
		if slices.Contains(c.args, flag) {
			return "", false
		}
	}
	name, locks = operations[c.Name]
	return name, locks
}

// String is the command line without what may be secret: its arguments.
func (c Command) String() string {
	return strings.TrimSpace(filepath.Base(c.Program) + " " + c.Name)
}

// CheckLockFlag refuses a -lock that would win over the one of Unlocked. The
// command would then wait for the lock that is held for it.
func (c Command) CheckLockFlag(getenv func(string) string) error {
	if flag := lockFlag(c.args); flag != "" {
		return fmt.Errorf("%s: %s can't be had: gcslock holds the lock in its place", c, flag)
	}
	// What TF_CLI_ARGS has is put after what TF_CLI_ARGS_... has.
	if flag := lockFlag(strings.Fields(getenv("TF_CLI_ARGS"))); flag != "" {
		return fmt.Errorf("%s: %s in TF_CLI_ARGS can't be had: gcslock holds the lock in its place", c, flag)
	}
	return nil
}

// lockFlag is the argument that switches locking on, if there is one.
func lockFlag(args []string) string {
	for _, arg := range args {
		arg = strings.Trim(arg, `"'`)
		name, value, given := strings.Cut(arg, "=")
		if name != "-lock" && name != "--lock" {
			continue
		}
		if on, err := strconv.ParseBool(value); !given || err == nil && on {
			return arg
		}
	}
	return ""
}

// Unlocked is the environment variable that has the command not lock, added to
// what the user has set it to. The later flag wins.
func (c Command) Unlocked(getenv func(string) string) string {
	name := "TF_CLI_ARGS_" + strings.NewReplacer("-", "_", " ", "_").Replace(c.Name)
	return name + "=" + strings.TrimSpace(getenv(name)+" -lock=false")
}

// ForceUnlock is the command line that removes the lock with this ID.
func (c Command) ForceUnlock(id int64) string {
	line := shell.Word(filepath.Base(c.Program))
	if c.chdir != "" {
		line += " " + shell.Word("-chdir="+c.chdir)
	}
	return fmt.Sprintf("%s force-unlock %d", line, id)
}

// ForceUnlock is that for people of whose program nothing is known. OpenTofu's
// users know what to put in its place.
func ForceUnlock(id int64) string { return Command{Program: "terraform"}.ForceUnlock(id) }
