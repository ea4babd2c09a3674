package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gcslock/gcslock/gcstest"
)

// announcement begins the one line that the emulator prints.
const announcement = "export STORAGE_EMULATOR_HOST="

func newEmulator() *cobra.Command {
	var listen string
	var buckets []string
	var idle time.Duration
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Serve a local Cloud Storage, in memory, on loopback",
		Long: `Serves a Cloud Storage in memory, on loopback only, until SIGINT, SIGTERM or
SIGHUP. It enforces the preconditions that a lock needs. When it is ready it prints
one line to export, which leads Google's storage clients to it.`,
		Example: `  gcslock emulator --listen 127.0.0.1:9000 --bucket jobs`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signals := catchSignals()
			defer signals.stop()
			ctx, stop := signals.context(cmd.Context())
			defer stop()

			server := gcstest.New(buckets...)
			listener, err := server.Listen(listen)
			if err != nil {
				return usageError{fmt.Errorf("--listen: %w", err)}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s%s\n", announcement, listener.URL())
			if err == nil {
				untilIdle(ctx, server, idle)
			}
			return errors.Join(err, listener.Close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:0", "loopback address and port; port 0 takes a free one")
	flags.StringArrayVar(&buckets, "bucket", nil, "`name` of a bucket to create; may be repeated")
	flags.DurationVar(&idle, "idle", 0, "end after so long without a request; 0: never")
	return cmd
}

// untilIdle returns when ctx has ended, or when there was no request for as
// long as idle. It looks at the server's request log, and empties it: it would
// grow for ever.
func untilIdle(ctx context.Context, server *gcstest.Server, idle time.Duration) {
	every := time.Minute
	if idle > 0 {
		every = idle / 10
	}
	look := time.NewTicker(every)
	defer look.Stop()
	quiet := time.Duration(0)
	for idle <= 0 || quiet < idle {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if quiet += every; len(server.Requests()) > 0 {
			server.ResetRequests()
			quiet = 0
		}
	}
}
