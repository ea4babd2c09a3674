package main

import "github.com/spf13/cobra"

// describeCompletion says what a shell offers for arguments and values: gs://,
// and no files but where a file is wanted. Nothing is asked of Cloud Storage: a
// Tab would cost a request, and wait for it.
func describeCompletion(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "run":
			cmd.ValidArgsFunction = completeRun
			completeFiles(cmd, "payload")
		case "man":
			cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
		case "status", "list", "watch", "break":
			cmd.ValidArgsFunction = completeURL
		}
	}
}

// completeFiles has a flag offer files, as every flag would by itself.
func completeFiles(cmd *cobra.Command, flag string) {
	// It fails for a flag that does not exist, or has a completion already.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	})
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
