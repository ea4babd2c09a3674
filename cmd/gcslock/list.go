package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/spf13/cobra"
	"google.golang.org/api/iterator"

	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
	"github.com/gcslock/gcslock/internal/inside"
)

// textLimit is how many columns an owner or an operation gets in a table; status
// shows all of it. One holder with a long label would push everybody's out of
// sight.
const textLimit = 40

// A lister is one call of gcslock list.
type lister struct {
	*looker
	all    bool
	prefix string

	table table
	found bool
}

func newList() *cobra.Command {
	l := &lister{}
	cmd := &cobra.Command{
		Use:   "list gs://BUCKET[/PREFIX]",
		Short: "List the locks whose names begin with a prefix",
		Long: `Lists the locks in the bucket whose names begin with the prefix, in the order of
their names, with their states as status has them. Stale ones are marked so. The
prefix is one of text: gs://jobs/night also finds nightly/lock.

Objects that are no locks are left out: those without a lock's metadata, but for
Terraform's own locks (.tflock), which are foreign. --all lists them all. Who holds
a lock of Terraform's own, status tells.

One request of class A for every 1,000 objects below the prefix, locks or not.
Needs storage.objects.list.

` + exitCodeTable,
		Example: `  gcslock list gs://jobs/nightly/
  gcslock list --json gs://jobs | jq -r 'select(.state == "stale") | .lock'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.parse(args); err != nil {
				return usageError{err}
			}
			return l.withClient(cmd, l.list)
		},
	}
	l.looker = newLooker(cmd)
	cmd.Flags().BoolVar(&l.all, "all", false, "list objects that are no locks, too, as foreign")
	return cmd
}

// parse takes gs://BUCKET, gs://BUCKET/ or gs://BUCKET/PREFIX.
func (l *lister) parse(args []string) error {
	if len(args) != 1 {
		return errors.New("want gs://BUCKET or gs://BUCKET/PREFIX; see gcslock list --help")
	}
	var err error
	if l.bucket, l.prefix, err = parsePrefix(args[0]); err != nil {
		return err
	}
	l.lock = inside.URL(l.bucket, l.prefix)
	return nil
}

// list shows a page at a time: a listing of many objects takes a while.
func (l *lister) list(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	limit := time.AfterFunc(lookLimit, func() { cancel(context.DeadlineExceeded) })
	defer limit.Stop()
	objects := l.objects(ctx)
	for {
		attrs, err := objects.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			_, err = inside.Failed("list", l.lock, err)
			return l.fail(exitStorage, err)
		}
		limit.Reset(lookLimit)
		if err := l.add(attrs); err != nil {
			return err
		}
		if objects.PageInfo().Remaining() == 0 {
			if err := l.table.flush(l.screen, l.screen.coloured); err != nil {
				return err
			}
		}
	}
	if !l.found {
		l.tell(message{Event: eventEmpty, Text: "no locks below " + l.lock})
	}
	return nil
}

// objects asks for what the table shows, and no more.
func (l *lister) objects(ctx context.Context) *storage.ObjectIterator {
	query := &storage.Query{Prefix: l.prefix, Projection: storage.ProjectionNoACL}
	// The names are those of ObjectAttrs' fields, which are known here.
	_ = query.SetAttrSelection([]string{"Name", "Generation", "Metageneration", "Metadata", "Created", "Updated", "Size", "ContentType"})
	return l.client.Bucket(l.bucket).Retryer(storage.WithMaxAttempts(lookAttempts)).Objects(ctx, query)
}

// add takes an object into the table, or writes its JSON, if it is a lock.
func (l *lister) add(attrs *storage.ObjectAttrs) error {
	r := l.reportOf(attrs)
	if r.Foreign && !l.all && !strings.HasSuffix(attrs.Name, terraform.Suffix) {
		return nil
	}
	if r.State == stateUnknown && !l.found {
		l.warnUnknown()
	}
	first := !l.found
	l.found = true
	if l.json {
		return l.screen.emit(r)
	}
	if first {
		var head []cell
		for _, name := range []string{"OBJECT", "STATE", "OWNER", "OPERATION", "SINCE", "REFRESHED", "LEFT", "TOKEN"} {
			head = append(head, cell{name, ""})
		}
		l.table.add(head...)
	}
	text := func(s string) cell {
		if s == "" {
			s = "-"
		}
		return cell{shorten(inside.Printable(s), textLimit), ""}
	}
	l.table.add(cell{inside.Printable(attrs.Name), ""}, cell{r.State, stateColours[r.State]},
		text(r.Owner), text(r.Operation), cell{moment(r.Since, r.now), ""}, cell{moment(r.Refreshed, r.now), ""},
		cell{r.briefLeft(), ""}, cell{strconv.FormatInt(r.Generation, 10), ""})
	return nil
}

// briefLeft is left for a column.
func (r *report) briefLeft() string {
	switch {
	case r.State == stateForeign || r.StaleAfter.IsZero():
		return "no end"
	case r.State == stateUnknown:
		return "not known"
	case r.now.After(r.StaleAfter):
		return "none"
	}
	return span(r.StaleAfter.Sub(r.now))
}
