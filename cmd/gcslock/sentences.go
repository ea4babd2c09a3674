package main

import (
	"fmt"
	"strings"
)

// sentence is a report on one line, for a refusal.
func (r *report) sentence() string {
	if r.Foreign {
		since := "" // check does not know it
		if !r.Since.IsZero() {
			since = ", since " + moment(r.Since, r.now)
		}
		return fmt.Sprintf("%s is held by an object that is no lock of gcslock's%s, generation %d", r.url, since, r.Generation)
	}
	return fmt.Sprintf("%s is held by %s, since %s, refreshed %s, time left: %s, generation %d",
		r.url, r.holder.text(), moment(r.Since, r.now), moment(r.Refreshed, r.now), r.left(), r.Generation)
}

// text is who holds a lock, and with which token, for a line of watch.
func (r *report) text() string {
	if r.Foreign {
		return fmt.Sprintf("a foreign object, token %d", r.Generation)
	}
	return fmt.Sprintf("%s, token %d", r.holder.text(), r.Generation)
}

// text is what a line of watch says after the event.
func (c *change) text() string {
	switch c.Event {
	case changeFree:
		return c.url + " is free"
	case changeHeld:
		return fmt.Sprintf("%s is %s, held by %s, since %s, time left: %s", c.url, c.State, c.report.text(), moment(c.Since, c.now), c.left())
	case changeTaken:
		return "by " + c.report.text()
	case changeRefreshed:
		return "time left: " + c.left()
	case changeStale:
		return stateMeaning[stateStale]
	case changeEdited:
		if len(c.Edited) == 0 {
			return "metadata written again, unchanged"
		}
		return fmt.Sprintf("metadata %q", c.Edited) // of strangers: quoted
	case changeReplaced:
		text := fmt.Sprintf("by %s; before, by %s", c.report.text(), c.before.text())
		if c.before.State == stateStale {
			text += ", which was stale"
		}
		return text
	}
	return "released or broken; before, held by " + c.before.text()
}

// colouring is the state whose colour the event gets.
func (c *change) colouring() string {
	if c.Event == changeEdited {
		return stateForeign
	}
	return c.State
}

// text is who a holder is. Strangers wrote it: quoted.
func (h *holder) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", h.Owner)
	if h.Host != "" {
		fmt.Fprintf(&b, " on %q", h.Host)
	}
	if h.PID != 0 {
		fmt.Fprintf(&b, ", pid %d", h.PID)
	}
	if h.Operation != "" {
		fmt.Fprintf(&b, ", for %q", h.Operation)
	}
	return b.String()
}
