package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// TestSection: what a worker writes of a lease that is held to the end, of one
// whose object goes under it, and of one where the release finds that.
func TestSection(t *testing.T) {
	if !canRun {
		t.Skip("needs Linux")
	}
	server := gcstest.New(bucket)
	client, err := server.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	path := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.file.Close()
	w := &worker{workerPlan: workerPlan{Process: "1/1", TTL: 3 * time.Second}, journal: j}
	if w.lock, err = gcslock.New(client.Bucket(bucket), object, gcslock.WithTTL(w.TTL)); err != nil {
		t.Fatal(err)
	}
	turn := func(ctx context.Context, length time.Duration, loses bool) {
		t.Helper()
		lease, err := w.lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if loses {
			server.Delete(bucket, object)
		}
		if !w.section(ctx, lease, length) {
			t.Error("no section")
		}
		w.released(lease, lease.Release(t.Context()))
	}
	soon, cancel := context.WithTimeout(t.Context(), 3*quiet)
	defer cancel()
	turn(soon, time.Hour, false)
	turn(t.Context(), time.Hour, true) // the refresh finds it
	turn(t.Context(), 0, true)         // the release does

	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, torn, err := parse(f)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for i, l := range lines {
		if i == 0 || l.what != works || lines[i-1].what != works {
			kinds = append(kinds, strings.TrimSpace(l.what+" "+l.text))
		}
		if left := l.expires - l.at; l.what == begins && (left <= 0 || left > w.TTL-w.TTL/10) {
			t.Errorf("a lease that has just begun expires in %v", left)
		}
	}
	if got, want := strings.Join(kinds, " "), "begin work end begin work lost begin end lost by the release"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	sum, found := check(lines, torn, 1)
	if sum.sections != 3 || sum.lost != 2 || len(found) != 2 {
		t.Errorf("%+v, found %q, want the two losses", sum, found)
	}
}
