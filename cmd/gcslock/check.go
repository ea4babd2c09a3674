package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/spf13/cobra"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/preflight"
)

// A checker is one call of gcslock check.
type checker struct {
	*teller
	bucket, object string
	emulator       bool
	stdout         io.Writer
}

const checkHelp = `Looks at a bucket before a lock in it is relied on, with the credentials that
gcslock run would have, and says what has to be mended, by which gcloud command.
The lock object itself is read and never touched; what a lock does is tried on
probe objects beside it, whose names begin with its name. They are removed in any
case, also on SIGINT and SIGTERM; where deletes are refused there is one, and it
is named. On a bucket with soft delete the removed ones are kept as all others.

It looks at each permission, whether preconditions are enforced, the retention
policy, holds, versioning, soft delete, lifecycle rules, storage class, public
access and caching, this machine's clock, and ten times at how long each
operation takes, and says the shortest sensible ttl for that. The settings need
storage.buckets.get, which a lock does not need; without it they are unknown.

It makes 72 requests, 28 of them writes, and more where some fail: $0.0002 at
Google's list prices for Standard storage in one region.

With --json it prints one JSON object: lock (the gs:// URL), fit, verdict, held
(absent where the lock can't be read), holder (as in gcslock run --json),
ttl_seconds, latencies (operation, samples, failed, median_ms, worst_ms),
findings (name, state: ok, warn, fail or unknown, seen, why, fix: command lines)
and left (probe objects that could not be removed).

Exit codes:
  0      the lock can be relied on; there may be warnings
  64     usage: a flag or a name is wrong; no request was sent
  69     storage: no bucket, no network, no credentials; there is no verdict
  78     the lock can't be relied on before the findings marked FAIL are mended
  128+n  gcslock was told to end by signal n; the probe objects are removed`

func newCheck() *cobra.Command {
	c := &checker{teller: &teller{}}
	cmd := &cobra.Command{
		Use:     "check [flags] gs://BUCKET/OBJECT",
		Short:   "Look whether a lock can be relied on",
		Long:    checkHelp,
		Example: `  gcslock check gs://jobs/nightly/lock`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.out, c.stdout = cmd.ErrOrStderr(), cmd.OutOrStdout()
			if err := c.parse(args); err != nil {
				return usageError{err}
			}
			return c.check(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.json, "json", false, "print the findings in JSON")
	flags.BoolVar(&c.emulator, "emulator", false, "use a local server in memory, started if there is none")
	return cmd
}

func (c *checker) parse(args []string) error {
	if len(args) != 1 {
		return errors.New("want gs://BUCKET/OBJECT; see gcslock check --help")
	}
	var err error
	if c.bucket, c.object, err = parseTarget(args[0]); err != nil {
		return err
	}
	c.lock = (&gcslock.Info{Bucket: c.bucket, Object: c.object}).URL()
	_, err = gcslock.New(new(storage.Client).Bucket(c.bucket), c.object)
	return err
}

// check looks, and prints what it has found. What goes wrong is told here; the
// error is the exit code.
func (c *checker) check(ctx context.Context) error {
	signals := catchSignals()
	defer signals.stop()
	ctx, stop := signals.context(ctx)
	report, err := c.look(ctx)
	if caught := stop(); caught != nil {
		c.tellLeft(report)
		return c.fail(exitSignal+signalNumber(caught), fmt.Errorf("ended by signal %v before there was a verdict on %s", caught, c.lock))
	}
	if err != nil {
		c.tellLeft(report)
		return c.fail(exitStorage, err)
	}
	if err := c.print(report); err != nil {
		return c.fail(exitStorage, fmt.Errorf("standard output: %w", err))
	}
	if !report.Fit() {
		return codeError{exitUnfit}
	}
	return nil
}

func (c *checker) look(ctx context.Context) (*preflight.Report, error) {
	emulator := ""
	if c.emulator {
		var err error
		if emulator, err = sharedEmulator(ctx, c.bucket); err != nil {
			return new(preflight.Report), fmt.Errorf("emulator: %w", err)
		}
		c.tell(message{Event: eventEmulator, Text: "using the local emulator at " + emulator})
	}
	client, server, err := newWatchfulClient(ctx, emulator)
	if err != nil {
		return new(preflight.Report), err
	}
	defer client.Close()
	return preflight.Run(ctx, preflight.Target{Bucket: client.Bucket(c.bucket), Object: c.object, Offset: server.offset})
}

// tellLeft says what a check that came to no verdict has left.
func (c *checker) tellLeft(report *preflight.Report) {
	for _, left := range report.Left {
		c.tell(message{Event: eventWarning, Text: "could not remove the probe object " + left})
	}
}

func (c *checker) print(report *preflight.Report) error {
	if c.json {
		return json.NewEncoder(c.stdout).Encode(c.asJSON(report))
	}
	_, err := io.WriteString(c.stdout, c.asText(report))
	return err
}

// asText is the report for people: a line for each finding, and below those that
// are not in order why it matters and what to do.
func (c *checker) asText(report *preflight.Report) string {
	var b strings.Builder
	switch {
	case report.Holder != nil:
		fmt.Fprintln(&b, oneLine(&gcslock.HeldError{Holder: *report.Holder}))
	case report.Readable:
		fmt.Fprintln(&b, c.lock, "is free")
	}
	width := 0
	for _, f := range report.Findings {
		width = max(width, len(f.Name))
	}
	placeholder := false
	for _, f := range report.Findings {
		fmt.Fprintf(&b, "%s  %-*s  %s\n", stateWord(f.State), width, f.Name, f.Seen)
		if f.Why != "" {
			fmt.Fprintf(&b, "         %s\n", f.Why)
		}
		for _, fix := range f.Fix {
			fmt.Fprintf(&b, "         fix: %s\n", fix)
			placeholder = placeholder || strings.Contains(fix, "="+preflight.Member)
		}
	}
	if placeholder {
		fmt.Fprintf(&b, "%s stands for whoever gcslock runs as, such as serviceAccount:NAME@PROJECT.iam.gserviceaccount.com\n", preflight.Member)
	}
	fmt.Fprintln(&b, report.Verdict(c.lock))
	return b.String()
}

// stateWord is the first column.
func stateWord(state preflight.State) string {
	word := string(state)
	if state == preflight.Fail {
		word = "FAIL"
	}
	return fmt.Sprintf("%-7s", word)
}

// checkJSON is what check --json prints, see checkHelp.
type checkJSON struct {
	Lock       string              `json:"lock"`
	Fit        bool                `json:"fit"`
	Verdict    string              `json:"verdict"`
	Held       *bool               `json:"held,omitempty"`
	Holder     *holder             `json:"holder,omitempty"`
	TTLSeconds float64             `json:"ttl_seconds,omitempty"`
	Latencies  []latencyJSON       `json:"latencies"`
	Findings   []preflight.Finding `json:"findings"`
	Left       []string            `json:"left"`
}

type latencyJSON struct {
	Operation string  `json:"operation"`
	Samples   int     `json:"samples"`
	Failed    int     `json:"failed"`
	MedianMS  float64 `json:"median_ms"`
	WorstMS   float64 `json:"worst_ms"`
}

func (c *checker) asJSON(report *preflight.Report) checkJSON {
	out := checkJSON{
		Lock: c.lock, Fit: report.Fit(), Verdict: report.Verdict(c.lock),
		TTLSeconds: report.TTL.Seconds(), Findings: report.Findings,
		// Never null.
		Latencies: []latencyJSON{}, Left: append([]string{}, report.Left...),
	}
	if report.Readable {
		held := report.Holder != nil
		out.Held = &held
	}
	if report.Holder != nil {
		out.Holder = holderOf(*report.Holder)
	}
	for _, l := range report.Latencies {
		out.Latencies = append(out.Latencies, latencyJSON{l.Operation, l.Samples, l.Failed, milliseconds(l.Median), milliseconds(l.Worst)})
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
