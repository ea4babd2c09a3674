// Command gcslock runs other commands under a lock that is one Cloud Storage
// object, and serves a local Cloud Storage to try that with.
package main

import (
	"os"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs the command line and returns the exit code.
func execute(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.Execute()
	return exitCode(root.ErrOrStderr(), err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gcslock",
		Short: "Run commands under a lock on a Cloud Storage object",
		Long: `gcslock runs a command under a lock that is one object in a Cloud Storage
bucket: one run at a time, on however many machines, and a run that crashed
frees the lock by itself.`,
		// Errors are printed once, by execute, and without the help text: it
		// would hide them.
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newRun(), newCheck(), newEmulator(), newVersion())
	return root
}
