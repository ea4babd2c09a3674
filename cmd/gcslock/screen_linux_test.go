package main

import (
	"bufio"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// onTerminal is what a command shows a person. watch is ended after its first
// line.
func (s *site) onTerminal(env []string, args ...string) string {
	s.Helper()
	person, program := terminal(s.T)
	cmd := s.command(args...)
	cmd.Env = append(cmd.Env, append([]string{"TERM=xterm", "NO_COLOR="}, env...)...)
	cmd.Stdout, cmd.Stderr = program, program
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	program.Close() // the process has its own
	var shown strings.Builder
	scanner := bufio.NewScanner(person)
	for scanner.Scan() { // until nobody can write there any more
		shown.WriteString(strings.TrimSuffix(scanner.Text(), "\r") + "\n")
		if args[0] == "watch" {
			_ = cmd.Process.Kill() // it may have ended by itself, with an error
		}
	}
	_ = cmd.Wait() // the exit code is another test's
	return shown.String()
}

// TestColour is for terminals, and for those who want it.
func TestColour(t *testing.T) {
	colours := map[string]string{live: colourGreen, stale: colourRed, foreign: colourYellow}
	for _, command := range lookCommands {
		for kind, colour := range colours {
			t.Run(command+" "+kind, func(t *testing.T) {
				s := newSite(t)
				shown := s.onTerminal(nil, s.lookArgs(command, kind)...)
				word := map[bool]string{true: "held", false: stateOfLock[kind]}[command == "watch"]
				if !strings.Contains(shown, colour+word+colourEnd) || strings.Count(shown, "\x1b") != 2 {
					t.Errorf("shows %q", shown)
				}
			})
		}
		for name, env := range map[string][]string{"NO_COLOR": {"NO_COLOR=1"}, "a dumb terminal": {"TERM=dumb"}} {
			t.Run(command+" "+name, func(t *testing.T) {
				s := newSite(t)
				if shown := s.onTerminal(env, s.lookArgs(command, stale)...); strings.Contains(shown, "\x1b") || !strings.Contains(shown, "stale") {
					t.Errorf("shows %q", shown)
				}
			})
		}
		t.Run(command+" --json", func(t *testing.T) {
			s := newSite(t)
			args := slices.Insert(s.lookArgs(command, stale), 1, "--json")
			if shown := s.onTerminal(nil, args...); s.reports(shown)[0]["state"] != stateStale {
				t.Errorf("shows %q", shown)
			}
		})
	}
}

// TestColourOfCheck: each state of a finding has its own.
func TestColourOfCheck(t *testing.T) {
	s := newSiteWith(t, map[string]any{"storageClass": "NEARLINE"})
	forbid("storage.objects.create")(s)
	shown := s.onTerminal(nil, "check", target)
	for state, want := range map[string]string{
		"ok": colourGreen + "ok" + colourEnd + "       ", "warn": colourYellow + "warn" + colourEnd + "     ",
		"fail": colourRed + "FAIL" + colourEnd + "     ", "unknown": colourYellow + "unknown" + colourEnd + "  ",
	} {
		if !strings.Contains(shown, "\n"+want) {
			t.Errorf("shows nothing that is %s: %q", state, shown)
		}
	}
	if _, piped, _ := s.run("check", target); strings.Contains(piped, "\x1b") || !strings.Contains(piped, "\nFAIL     ") {
		t.Errorf("a pipe gets %q", piped)
	}
	if shown := s.onTerminal(nil, "check", "--json", target); strings.Contains(shown, "\x1b") || s.reports(shown)[0]["fit"] != false {
		t.Errorf("shows %q", shown)
	}
}

// TestPipeIsLikeTerminal: the same words in the same columns.
func TestPipeIsLikeTerminal(t *testing.T) {
	s := newSite(t)
	// The times of this one are told in whole hours: they are the same twice.
	s.server.SetClock(func() time.Time { return time.Now().Add(-84*time.Hour - 30*time.Minute) })
	s.server.Put("jobs", "lock", gcstest.Object{Metadata: map[string]string{"owner": "me", "nonce": "n", "ttl": "1m"}})
	s.server.SetClock(nil)
	uncoloured := strings.NewReplacer(colourRed, "", colourEnd, "")
	for _, args := range [][]string{{"list", "gs://jobs"}, {"status", target}} {
		_, piped, _ := s.run(args...)
		shown := s.onTerminal(nil, args...)
		if piped != uncoloured.Replace(shown) || piped == shown {
			t.Errorf("%s: a pipe gets\n%s\na terminal\n%s", args[0], piped, shown)
		}
	}
}

// TestHostileTexts can't reach a terminal with what they are made of, in any
// command, by any way out.
func TestHostileTexts(t *testing.T) {
	const hostile = "x\n\x1b[2J\u202e\r\u009bgcslock: all is well\x00\xff\U000e0041"
	metadata := map[string]string{"owner": hostile, "nonce": "n", "host": hostile, "operation": hostile, "team\x1b": hostile, "ttl": "1h"}
	object := "p\x1b[2J\u202e/x.tflock"
	content := []byte(`{"ID":"\u001b","Who":"\u001b[2J\u202e","Operation":"\u001b[2J","Version":"\u001b[2J","Info":"\u001b[2J\n","Created":"\u001b[2J","Path":"\u001b"}`)
	for name, o := range map[string]gcstest.Object{
		"ours":        {Metadata: metadata, Content: content, ContentType: "\x1b[2J"},
		"Terraform's": {Metadata: map[string]string{"\x1b": "\x1b\u202e"}, Content: content},
	} {
		for _, args := range [][]string{
			{"status", "gs://jobs/" + object}, {"list", "gs://jobs"}, {"watch", "gs://jobs/" + object},
			{"break", "gs://jobs/" + object, "--id", "5"}, {"break", "gs://jobs/" + object, "--id", "ID"},
			{"break", "gs://jobs/" + object, "--id", "ID", "--force"},
		} {
			for _, way := range []string{"", "--json"} {
				t.Run(name+" "+args[0]+" "+args[len(args)-1]+way, func(t *testing.T) {
					s := newSite(t)
					put := s.server.Put("jobs", object, o)
					args := slices.Clone(args)
					if i := slices.Index(args, "ID"); i > 0 {
						args[i] = generationText(put.Generation)
					}
					if way != "" {
						args = append(args, way)
					}
					shown := s.onTerminal([]string{"NO_COLOR=1"}, args...)
					if bad := unprintable(shown); bad != "" || !strings.Contains(shown, "[2J") {
						t.Errorf("shows %q, with %q", shown, bad)
					}
				})
			}
		}
	}
}
