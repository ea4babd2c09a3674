package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/spf13/cobra"

	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
	"github.com/gcslock/gcslock/internal/inside"
)

func newStatus() *cobra.Command {
	var l *looker
	cmd := &cobra.Command{
		Use:   "status gs://BUCKET/OBJECT",
		Short: "Tell who holds a lock, and whether it is alive",
		Long: `Tells who holds the lock, for what, since when, when it was last refreshed, how
much time is left until others could take it over, and the command that would
break it. A lock is

  live     refreshed in time
  stale    past its time: the next one to acquire it takes it over by itself
  foreign  not written by gcslock or a client of its protocol, such as
           Terraform's own: it never expires and is never taken over
  free     not there

by the server's clock, whatever the local one shows. One read, and another one
for a lock of Terraform's. Needs storage.objects.get, and list: without it a free
lock may look forbidden.

` + exitCodeTable,
		Example: `  gcslock status gs://jobs/nightly/lock
  gcslock status --json gs://jobs/nightly/lock | jq .owner`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.parseLock(cmd, args); err != nil {
				return err
			}
			return l.withClient(cmd, l.status)
		},
	}
	l = newLooker(cmd)
	return cmd
}

func (l *looker) status(ctx context.Context) error {
	r, err := l.look(ctx)
	if err == nil {
		err = l.show("lock", r)
	}
	if err == nil && !r.held() {
		err = codeError{exitFree}
	}
	return err
}

// show writes all of a report. The name has the title.
func (l *looker) show(title string, r report) error {
	if l.json {
		return l.screen.emit(r)
	}
	var t table
	add := func(name, text, colour string) {
		if text != "" {
			t.add(cell{name, ""}, cell{text, colour})
		}
	}
	add(title, r.url, "")
	add("state", r.State, stateColours[r.State])
	if r.Removed == nil {
		add("", stateMeaning[r.State], "")
	}
	if r.held() {
		r.details(add)
	}
	return t.flush(l.screen, l.screen.coloured)
}

// stateMeaning is what a state means for those who want the lock.
var stateMeaning = map[string]string{
	stateStale:   "the next one to acquire it takes it over by itself: there is nothing to do",
	stateForeign: "no lock of gcslock's: it never expires, and is never taken over",
	stateUnknown: "no reply told the server's time",
}

// details are the lines on a lock's holder. Strangers wrote the texts.
func (r *report) details(add func(name, text, colour string)) {
	add("owner", inside.Printable(r.Owner), "")
	add("host", inside.Printable(r.Host), "")
	if r.PID != 0 {
		add("pid", strconv.Itoa(r.PID), "")
	}
	add("operation", inside.Printable(r.Operation), "")
	add("since", moment(r.Since, r.now), "")
	add("refreshed", moment(r.Refreshed, r.now), "")
	if r.Removed == nil {
		add("left", r.left(), "")
	}
	add("token", strconv.FormatInt(r.Generation, 10), "")
	if r.PayloadBytes > 0 {
		add("payload", strings.TrimSuffix(fmt.Sprintf("%d bytes, %s", r.PayloadBytes, inside.Printable(r.PayloadType)), ", "), "")
	}
	for i, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		add([]string{"metadata", ""}[min(i, 1)], inside.Printable(key)+"="+inside.Printable(r.Metadata[key]), "")
	}
	if r.Terraform != nil {
		r.terraformDetails(add)
	}
	add("break", r.BreakCommand, "")
}

func (r *report) terraformDetails(add func(name, text, colour string)) {
	tf, kind := r.Terraform, "a state lock of Terraform or OpenTofu"
	if !r.Foreign {
		kind += ", held through gcslock"
	}
	add("terraform", kind, "")
	for _, line := range []struct{ name, text string }{
		{"who", tf.Who}, {"operation", tf.Operation}, {"info", tf.Info}, {"version", tf.Version},
	} {
		add("  "+line.name, inside.Printable(line.text), "")
	}
	if created := tf.CreatedAt(); !created.IsZero() {
		add("  created", moment(created, r.now), "")
	}
	// Ours frees itself, and nobody should take it from a run that is alive.
	if r.Removed == nil && r.Foreign {
		add("  unlock", terraform.ForceUnlock(r.Generation), "")
	}
}

// left is the time until others could take the lock over.
func (r *report) left() string {
	switch {
	case r.State == stateForeign || r.StaleAfter.IsZero():
		return "no end"
	case r.State == stateUnknown:
		return "not known; until " + r.StaleAfter.UTC().Format(time.RFC3339) + " by the server's clock, unless it is refreshed"
	}
	return timeLeft(r.StaleAfter, r.now)
}

// look is status's, and gets what only the object's content tells, too.
func (l *looker) look(ctx context.Context) (report, error) {
	attrs, _, err := l.read(ctx, storage.WithMaxAttempts(lookAttempts))
	if err != nil {
		return report{}, l.fail(exitStorage, err)
	}
	if attrs == nil {
		return l.freeReport(), nil
	}
	r := l.reportOf(attrs)
	r.Terraform = l.readTerraform(ctx, attrs)
	if r.State == stateUnknown {
		l.warnUnknown()
	}
	return r, nil
}
