package main

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/storage"
	"github.com/spf13/cobra"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

const (
	// lookLimit bounds one read of a lock, or of one page of a listing.
	lookLimit = 15 * time.Second

	// lookAttempts is how often a request that fails is sent in all.
	lookAttempts = 3
)

// once is for a request that is not sent again.
var once = storage.WithPolicy(storage.RetryNever)

// A looker is what the commands that look at locks have in common: what they
// are told of where to look, and a client that knows the server's time.
type looker struct {
	*teller
	screen         *screen
	bucket, object string
	emulator       bool

	client *storage.Client
	server *serverTime
}

// newLooker adds the flags that all these commands have.
func newLooker(cmd *cobra.Command) *looker {
	l := &looker{teller: &teller{}}
	cmd.Flags().BoolVar(&l.json, "json", false, "tell in JSON, an object a line, on stdout; errors in JSON on stderr")
	cmd.Flags().BoolVar(&l.emulator, "emulator", false, "use the local server in memory, as run --emulator does")
	return l
}

// parseLock takes the one argument, which names a lock.
func (l *looker) parseLock(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("want gs://BUCKET/OBJECT; see %s --help", cmd.CommandPath())}
	}
	var err error
	if l.bucket, l.object, err = parseTarget(args[0]); err != nil {
		return usageError{err}
	}
	// The library's own checks, on a client that never sends a request.
	if _, err = gcslock.New(new(storage.Client).Bucket(l.bucket), l.object); err != nil {
		return usageError{err}
	}
	l.lock = inside.URL(l.bucket, l.object)
	return nil
}

// withClient has do look, with a client. Opening that sends no request of the
// lock's.
func (l *looker) withClient(cmd *cobra.Command, do func(context.Context) error) error {
	l.out = cmd.ErrOrStderr()
	l.screen = newScreen(cmd.OutOrStdout(), l.json)
	ctx := cmd.Context()
	emulator, err := findEmulator(ctx, l.emulator, l.bucket)
	if err != nil {
		return l.fail(exitStorage, err)
	}
	if l.client, l.server, err = newWatchfulClient(ctx, emulator); err != nil {
		return l.fail(exitStorage, err)
	}
	defer l.client.Close()
	return do(ctx)
}

// name is an object's gs:// name as it is, for programs.
func (l *looker) name(object string) string { return "gs://" + l.bucket + "/" + object }

// read is one look at the object: its attributes, or nil if there is none. An
// error is in words already; lasting tells that another try would not help.
func (l *looker) read(ctx context.Context, retry storage.RetryOption) (attrs *storage.ObjectAttrs, lasting bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	attrs, err = l.client.Bucket(l.bucket).Object(l.object).Retryer(retry).Attrs(ctx)
	if err == nil {
		return attrs, false, nil
	}
	outcome, err := inside.Failed("read", l.lock, err)
	if outcome == inside.Absent {
		return nil, false, nil
	}
	return nil, outcome == inside.Permanent, err
}

// warnUnknown tells why nothing is said about liveness.
func (l *looker) warnUnknown() {
	l.warn("no reply told the server's time (the Date header is missing): whether " + l.lock + " is live or stale is not known")
}

func (l *looker) warn(text string) { l.tell(message{Event: eventWarning, Text: text}) }
