package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// The changes that watch prints.
const (
	changeFree      = "free"      // at the first look
	changeHeld      = "held"      // at the first look
	changeTaken     = "taken"     // it was free
	changeRefreshed = "refreshed" // by its holder
	changeStale     = "stale"     // its time ran out
	changeEdited    = "edited"    // the metadata, by somebody else
	changeReplaced  = "replaced"  // another lock object, with another token
	changeFreed     = "freed"     // released, or broken
)

// A change is a line of watch.
type change struct {
	Event    string   `json:"event"`
	Previous int64    `json:"previous_generation,omitempty"`
	Edited   []string `json:"edited,omitempty"`
	report

	before *report // of another holder, or the one that is gone
}

// minEvery keeps a watch from being a load: ten looks a second are more than a
// lock can change.
const minEvery = 100 * time.Millisecond

// A watcher is one call of gcslock watch.
type watcher struct {
	*looker
	every time.Duration

	last    *sight // nil before the first look that succeeded
	failing bool   // the last look failed, and that was told
}

// A sight is what one look showed.
type sight struct {
	report
	metageneration int64
	metadata       map[string]string // all of it; nil where free
}

func newWatch() *cobra.Command {
	w := &watcher{}
	cmd := &cobra.Command{
		Use:   "watch gs://BUCKET/OBJECT",
		Short: "Follow a lock, and print each change",
		Long: `Prints a line for each change of the lock, until it is told to end by a signal:

  free, held  what it is at the first look
  taken       by somebody, when it was free
  refreshed   by its holder
  stale       its time ran out: the next one to acquire it takes it over
  edited      its metadata, by somebody else
  replaced    it is another's now, with another token: taken over, or released
              and taken between two looks
  freed       released, or broken

What happens between two looks is not seen. A look that fails is told of once,
and tried again at the next one's time, for ever; but where there is no permission
or no bucket at the first look, that ends it.

One read a look: 3,600 an hour by default. Needs storage.objects.get, and list:
without it a free lock may look forbidden.

` + exitCodeTable,
		Example: `  gcslock watch gs://jobs/nightly/lock
  gcslock watch --json --every 5s gs://jobs/nightly/lock | jq -r .event`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.parseLock(cmd, args); err != nil {
				return err
			}
			if w.every < minEvery {
				return usageError{fmt.Errorf("--every %v is less than %v", w.every, minEvery)}
			}
			return w.withClient(cmd, w.run)
		},
	}
	w.looker = newLooker(cmd)
	cmd.Flags().DurationVar(&w.every, "every", time.Second, "pause between looks, 100ms or more")
	return cmd
}

// run ends with an error, or with ctx. Signals are left to end the process: it
// has nothing to clean up, and a shell's loop ends with it.
func (w *watcher) run(ctx context.Context) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		if err := w.step(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// step is one look.
func (w *watcher) step(ctx context.Context) error {
	attrs, lasting, err := w.read(ctx, once)
	if err != nil {
		if lasting && w.last == nil {
			return w.fail(exitStorage, err)
		}
		if !w.failing {
			w.failing = true
			w.warn(oneLine(err) + "; trying again")
		}
		return nil
	}
	if w.failing {
		w.failing = false
		w.tell(message{Event: eventRecovered, Text: w.lock + " can be read again"})
	}
	now := &sight{report: w.freeReport()}
	if attrs != nil {
		now = &sight{w.reportOf(attrs), attrs.Metageneration, attrs.Metadata}
	}
	if now.State == stateUnknown && w.last == nil {
		w.warnUnknown()
	}
	for _, c := range changes(w.last, now) {
		if err := w.print(c); err != nil {
			return err
		}
	}
	w.last = now
	return nil
}

// changes are what happened from one look to the next.
func changes(last, now *sight) []change {
	is := func(event string) []change { return []change{{Event: event, report: now.report}} }
	switch {
	case last == nil && !now.held():
		return is(changeFree)
	case last == nil:
		return is(changeHeld)
	case !last.held() && !now.held():
		return nil
	case !last.held():
		return is(changeTaken)
	case !now.held():
		return []change{{Event: changeFreed, report: now.report, Previous: last.Generation, before: &last.report}}
	case last.Generation != now.Generation:
		return []change{{Event: changeReplaced, report: now.report, Previous: last.Generation, before: &last.report}}
	}
	return changesOfOne(last, now)
}

// changesOfOne are those of the same lock object.
func changesOfOne(last, now *sight) []change {
	var list []change
	edited := editedKeys(last, now)
	refreshed := !now.Foreign && (last.metadata["refresh"] != now.metadata["refresh"] ||
		!last.Expires.Equal(now.Expires))
	if refreshed {
		list = append(list, change{Event: changeRefreshed, report: now.report})
	}
	if len(edited) > 0 || !refreshed && last.metageneration != now.metageneration {
		list = append(list, change{Event: changeEdited, Edited: edited, report: now.report})
	}
	if now.State == stateStale && last.State != stateStale {
		list = append(list, change{Event: changeStale, report: now.report})
	}
	return list
}

// editedKeys are those that no refresh changes.
func editedKeys(last, now *sight) []string {
	keys := maps.Clone(now.metadata)
	if keys == nil {
		keys = make(map[string]string)
	}
	maps.Copy(keys, last.metadata)
	if !now.Foreign {
		delete(keys, "refresh")
		delete(keys, "expires-at")
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool {
		before, was := last.metadata[key]
		after, is := now.metadata[key]
		return before == after && was == is
	})
}

func (w *watcher) print(c change) error {
	if w.json {
		return w.screen.emit(c)
	}
	_, err := fmt.Fprintf(w.screen, "%s  %s%s  %s\n", c.now.UTC().Format(time.RFC3339),
		w.screen.colour(c.colouring(), c.Event), strings.Repeat(" ", len(changeRefreshed)-len(c.Event)), c.text())
	return err
}
