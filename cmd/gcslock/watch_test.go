package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// A step is a change behind watch's back, and what it says of it.
type step struct {
	change func(*site)
	event  string
	says   string
}

var life = []step{
	{func(*site) {}, changeFree, "gs://jobs/lock is free"},
	{func(s *site) { s.put(live, "lock") }, changeTaken, `by "me" on "box", pid 4711, for "nightly import", token `},
	{func(s *site) { s.edit("refresh", "r2") }, changeRefreshed, "time left: "},
	{func(s *site) { s.edit("team", "x\x1b") }, changeEdited, `metadata ["team"]`},
	{func(s *site) { s.server.Edit("jobs", "lock", nil) }, changeEdited, "written again, unchanged"},
	{func(s *site) { s.put(live, "lock") }, changeReplaced, `; before, by "me"`},
	{func(s *site) { s.edit("refresh", "r3") }, changeRefreshed, "time left: "},
	{func(s *site) { s.server.SetClock(func() time.Time { return time.Now().Add(2 * time.Hour) }) }, changeStale, "takes it over by itself"},
	{func(s *site) { s.rival("somebody") }, changeReplaced, `by "somebody", token `},
	{func(s *site) { s.server.Delete("jobs", "lock") }, changeFreed, `before, held by "somebody"`},
	{func(s *site) { s.put(foreign, "lock") }, changeTaken, "a foreign object, token "},
	{func(s *site) { s.edit("a", "b") }, changeEdited, `["a"]`},
	{func(s *site) { s.put(olderLive, "lock") }, changeReplaced, "; before, by a foreign object, token "},
	{func(s *site) { s.edit("expires-at", "2099-01-01T00:00:00Z") }, changeRefreshed, "time left: "},
}

func (s *site) edit(key, value string) { s.server.Edit("jobs", "lock", map[string]string{key: value}) }

// TestWatch sees a lock's life, in words and in JSON.
func TestWatch(t *testing.T) {
	t.Run("words", func(t *testing.T) {
		s := newSite(t)
		p := s.start("watch", "--every", "100ms", target)
		for _, step := range life {
			step.change(s)
			line := p.stdout.line()
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[1] != step.event || !strings.Contains(line, step.says) || unprintable(line) != "" {
				t.Fatalf("%s: %q", step.event, line)
			}
			if _, err := time.Parse(time.RFC3339, fields[0]); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("JSON", func(t *testing.T) {
		s := newSite(t)
		p := s.start("watch", "--every", "100ms", "--json", target)
		var before any
		for _, step := range life {
			step.change(s)
			r := s.reports(p.stdout.line())[0]
			if r["event"] != step.event || r["lock"] != target {
				t.Fatalf("%s: %v", step.event, r)
			}
			if gone := step.event == changeReplaced || step.event == changeFreed; gone && r["previous_generation"] != before || !gone && r["previous_generation"] != nil {
				t.Errorf("%s: %v, want the generation before, %v", step.event, r, before)
			}
			before = r["generation"]
		}
	})
}

// TestNoChange: a state that lasts is told once.
func TestNoChange(t *testing.T) {
	for _, state := range []string{stateLive, stateStale} {
		sight := &sight{report: report{State: state, holder: &holder{Generation: 1}}}
		if got := changes(sight, sight); len(got) > 0 {
			t.Errorf("%s: %+v", state, got)
		}
	}
}

// TestTakeover is told as such.
func TestTakeover(t *testing.T) {
	before := &sight{report: report{State: stateStale, holder: &holder{Owner: "a", Generation: 1}}}
	now := &sight{report: report{State: stateLive, holder: &holder{Owner: "b", Generation: 2}}}
	got := changes(before, now)
	if len(got) != 1 || got[0].text() != `by "b", token 2; before, by "a", token 1, which was stale` {
		t.Errorf("%+v", got)
	}
}

// TestWatchHeld begins with what is there.
func TestWatchHeld(t *testing.T) {
	for _, kind := range []string{live, stale, foreign} {
		s := newSiteOf(t)
		s.put(kind, "lock")
		if line := s.start("watch", target).stdout.line(); !strings.Contains(line, "held       gs://jobs/lock is "+stateOfLock[kind]+", held by ") {
			t.Errorf("%s: %q", kind, line)
		}
	}
}

// TestWatchTrouble is told of once, and watching goes on.
func TestWatchTrouble(t *testing.T) {
	s := newSite(t)
	p := s.start("watch", "--every", "100ms", target)
	p.stdout.until("free")
	fault := s.server.Inject(gcstest.Fault{Op: gcstest.Get, Do: gcstest.FailStatus(503)})
	for fault.Hits() < 3 { // condition: three looks
		time.Sleep(10 * time.Millisecond)
	}
	fault.Remove()
	if line := p.stderr.line(); !strings.Contains(line, "503") || !strings.Contains(line, "trying again") || strings.Contains(line, "attempts") {
		t.Errorf("told %q", line)
	}
	if line := p.stderr.line(); !strings.Contains(line, "can be read again") {
		t.Errorf("told %q", line)
	}
	s.rival("somebody")
	p.stdout.until("taken")
}

// TestWatchCost: one read a look, also where it fails.
func TestWatchCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := gcstest.New("jobs")
		server.Inject(gcstest.Fault{Skip: 3, Times: 2, Do: gcstest.FailStatus(503)})
		l, out := lookerOn(t, server, "lock")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		if err := (&watcher{looker: l, every: time.Second}).run(ctx); err != nil {
			t.Error(err)
		}
		if n := len(server.Requests()); n != 11 {
			t.Errorf("%d requests in ten seconds, want 11", n)
		}
		if n := strings.Count(out.String(), "503"); n != 1 {
			t.Errorf("told %d times: %q", n, out)
		}
	})
}

// TestWatchFails at the first look, where another would not help.
func TestWatchFails(t *testing.T) {
	s := newSite(t)
	if code, _, stderr := s.run("watch", "gs://nowhere/lock"); code != exitStorage || !strings.Contains(stderr, "the bucket does not exist") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}
