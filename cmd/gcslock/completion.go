package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// describeCompletion says what a shell offers for arguments and values, by the
// commands' usage lines: gs:// where one begins with that, and no files but where
// a file is wanted. Nothing is asked of Cloud Storage: a Tab would cost a request,
// and wait for it.
func describeCompletion(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, cmd := range root.Commands() {
		switch {
		case strings.Contains(cmd.Use, " -- "):
			cmd.ValidArgsFunction = completeRun
		case strings.Contains(cmd.Use, " gs://"):
			cmd.ValidArgsFunction = completeURL
		case strings.HasSuffix(cmd.Use, " DIRECTORY"):
			cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
		}
		if cmd.Flags().Lookup("payload") != nil {
			// It fails only where the flag has a completion already.
			_ = cmd.RegisterFlagCompletionFunc("payload", completeFile)
		}
	}
}

// completeFile offers files, as every flag would by itself.
func completeFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completeURL begins the one argument.
func completeURL(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"gs://"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeRun leaves the command and its arguments to the shell.
func completeRun(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeURL(cmd, args, toComplete)
}
