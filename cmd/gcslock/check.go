package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gcslock/gcslock/internal/preflight"
)

const checkHelp = `Looks at a bucket before a lock in it is relied on, with the credentials that
gcslock run would have, and says what has to be mended, by which gcloud command.
The lock object itself is read and never touched; what a lock does is tried on
probe objects beside it, whose names begin with its name. They are removed in any
case, also on SIGINT, SIGTERM and SIGHUP; where deletes are refused there is one,
and it is named. On a bucket with soft delete the removed ones are kept as all
others are.

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

Needs the permissions that run needs; those that are missing are found.`

// A checker is one call of gcslock check.
type checker struct{ *looker }

func newCheck() *cobra.Command {
	c := &checker{}
	cmd := &cobra.Command{
		Use:   "check gs://BUCKET/OBJECT",
		Short: "Look whether a lock can be relied on",
		Long:  checkHelp + "\n\n" + exitCodeTable,
		Example: `  gcslock check gs://jobs/nightly/lock
  gcslock check --json gs://jobs/nightly/lock | jq -r '.findings[] | select(.state == "fail") | .fix[]'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.parseLock(cmd, args); err != nil {
				return err
			}
			return c.withClient(cmd, c.check)
		},
	}
	c.looker = newLooker(cmd)
	return cmd
}

// check looks, and prints what it has found.
func (c *checker) check(ctx context.Context) error {
	signals := catchSignals()
	defer signals.stop()
	ctx, stop := signals.context(ctx)
	report, err := preflight.Run(ctx, preflight.Target{Bucket: c.client.Bucket(c.bucket), Object: c.object, Offset: c.server.offset})
	if caught := stop(); caught != nil {
		c.tellLeft(report)
		return c.fail(exitSignal+signalNumber(caught), fmt.Errorf("ended by signal %v before there was a verdict on %s", caught, c.lock))
	}
	if err != nil {
		c.tellLeft(report)
		return c.fail(exitStorage, err)
	}
	if err := c.print(report); err != nil {
		return err
	}
	if !report.Fit() {
		return codeError{exitUnfit}
	}
	return nil
}

// tellLeft says what a check that came to no verdict has left.
func (c *checker) tellLeft(report *preflight.Report) {
	for _, left := range report.Left {
		c.warn("could not remove the probe object " + left)
	}
}

func (c *checker) print(report *preflight.Report) error {
	if c.json {
		return c.screen.emit(c.asJSON(report))
	}
	_, err := io.WriteString(c.screen, c.asText(report))
	return err
}

// asText is the report for people: a line for each finding, and below those that
// are not in order why it matters and what to do.
func (c *checker) asText(report *preflight.Report) string {
	var b strings.Builder
	switch {
	case report.Holder != nil:
		holder := c.reportOn(report.Holder)
		fmt.Fprintln(&b, holder.sentence())
	case report.Readable:
		fmt.Fprintln(&b, c.lock, "is free")
	}
	width := 0
	for _, f := range report.Findings {
		width = max(width, len(f.Name))
	}
	placeholder := false
	for _, f := range report.Findings {
		fmt.Fprintf(&b, "%s  %-*s  %s\n", c.stateWord(f.State), width, f.Name, f.Seen)
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
func (c *checker) stateWord(state preflight.State) string {
	word := string(state)
	if state == preflight.Fail {
		word = strings.ToUpper(word)
	}
	return c.screen.colour(string(state), word) + strings.Repeat(" ", len(preflight.Unknown)-len(word))
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
		Lock: c.name(c.object), Fit: report.Fit(), Verdict: report.Verdict(c.lock),
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
