package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
)

// moment is a time as people want it: how far off it is, and when. Both are by
// the server's clock, where that is known.
func moment(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	relative := span(now.Sub(t)) + " ago"
	if t.Sub(now) >= time.Second/2 { // "in 0s" is nothing that has happened
		relative = "in " + span(t.Sub(now))
	}
	return fmt.Sprintf("%s (%s)", relative, t.UTC().Format(time.RFC3339))
}

// timeLeft is the time until others could take a lock over.
func timeLeft(end, now time.Time) string {
	if now.After(end) {
		return "none, it ended " + moment(end, now)
	}
	return fmt.Sprintf("%s, unless it is refreshed until then (%s)", span(end.Sub(now)), end.UTC().Format(time.RFC3339))
}

// span is a duration in whole seconds, or in days and hours where it is long.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	d = d.Abs().Round(time.Second)
	if d < 2*day {
		return d.String()
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// jsonLine is a value in JSON on one line. Strangers' texts may come before a
// person's eyes here, too: what is not printable is escaped.
func jsonLine(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String() + "\n"), nil
}
