package main

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 12, 1, 17, 5, 7, 0, time.FixedZone("", 3600))
	for want, at := range map[string]time.Time{
		"2m3s ago (2026-12-01T16:03:04Z)":     now.Add(-2*time.Minute - 3*time.Second),
		"in 49s (2026-12-01T16:05:56Z)":       now.Add(49 * time.Second),
		"0s ago (2026-12-01T16:05:07Z)":       now.Add(400 * time.Millisecond),
		"in 1s (2026-12-01T16:05:07Z)":        now.Add(500 * time.Millisecond),
		"47h59m0s ago (2026-11-29T16:06:07Z)": now.Add(-48*time.Hour + time.Minute),
		"3d2h ago (2026-11-28T13:59:07Z)":     now.Add(-74*time.Hour - 6*time.Minute),
		"-":                                   {},
	} {
		if got := moment(at, now); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}

// TestJSONLine escapes what a terminal would act on, and reads back as it was.
func TestJSONLine(t *testing.T) {
	const text = "a\x1b[2J\u202e\u009b\U000e0041ロ\"\\"
	line, err := jsonLine(map[string]string{"text": text})
	if err != nil || unprintable(string(line)) != "" {
		t.Errorf("%q, %v", line, err)
	}
	var back map[string]string
	if err := json.Unmarshal(line, &back); err != nil || back["text"] != text {
		t.Errorf("%s reads as %q, %v", line, back, err)
	}
}
