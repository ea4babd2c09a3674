package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// An entry is one line of the journal: a section begins or ends. The journal is
// opened for appending, so that the lines stand in the order of the writes,
// whichever process made them and whatever its clock said.
type entry struct {
	what, owner, token string
	nanoseconds        int64
}

// record is one section.
func record(journal string, length time.Duration) error {
	f, err := os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	write := func(what string) error {
		_, err := fmt.Fprintln(f, what, os.Getenv("GCSLOCK_OWNER"), os.Getenv("GCSLOCK_TOKEN"), time.Now().UnixNano())
		return err
	}
	err = write("begin")
	time.Sleep(length)
	return errors.Join(err, write("end"), f.Close())
}

func read(journal string) ([]entry, error) {
	f, err := os.Open(journal)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var history []entry
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e entry
		if _, err := fmt.Sscan(lines.Text(), &e.what, &e.owner, &e.token, &e.nanoseconds); err != nil {
			return nil, fmt.Errorf("journal: %q: %w", lines.Text(), err)
		}
		history = append(history, e)
	}
	return history, nil
}

// check is an error if two sections overlapped, if a token came twice, or if
// not every process got its turns; else it tells the gaps between sections and
// how long the processes were at it.
func check(history []entry, processes, sections int) (report string, err error) {
	turns, tokens := map[string]int{}, map[string]bool{}
	var gaps []time.Duration
	for i := 0; i < len(history); i += 2 {
		begin := history[i]
		if begin.what != "begin" || i+1 == len(history) || history[i+1].what != "end" || history[i+1].token != begin.token {
			return "", fmt.Errorf("sections overlap at line %d: %v", i+1, history[i:min(i+4, len(history))])
		}
		if tokens[begin.token] {
			return "", fmt.Errorf("token %s came twice", begin.token)
		}
		tokens[begin.token] = true
		turns[begin.owner]++
		if i > 0 {
			gaps = append(gaps, time.Duration(begin.nanoseconds-history[i-1].nanoseconds))
		}
	}
	for owner, n := range turns {
		if n != sections {
			return "", fmt.Errorf("%s had %d turns instead of %d", owner, n, sections)
		}
	}
	if len(turns) != processes {
		return "", fmt.Errorf("%d processes had turns instead of %d", len(turns), processes)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "no overlap in %d sections, every process had its %d\n", len(tokens), sections)
	if len(gaps) > 0 {
		slices.Sort(gaps)
		at := func(share float64) time.Duration {
			return gaps[int(share*float64(len(gaps)-1))].Round(time.Millisecond)
		}
		fmt.Fprintf(&b, "gap from one section to the next: median %v, p95 %v, worst %v\n", at(.5), at(.95), at(1))
	}
	return b.String(), nil
}
