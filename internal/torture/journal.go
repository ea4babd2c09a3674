package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// What a line of the journal tells.
const (
	// By a worker, about a lease: its section begins, is going on, has ended.
	// Each says that the lease was valid at the time of the line, and would be
	// until it expires, by its own account.
	begins = "begin"
	works  = "work"
	ends   = "end"
	// The lease has told the worker that it is lost. It may follow an end,
	// from the release.
	loses = "lost"

	takesOver = "takeover"   // a worker deleted a stale lock, whose token it is
	leaves    = "unreleased" // a release failed, and the object may be there
	wrong     = "wrong"      // something that must not happen, in words

	// By the parent, about a process.
	kills    = "killed"
	pauses   = "paused"
	resumes  = "resumed"
	cutsOff  = "cut" // black-holed for a while
	restarts = "restarted"
)

// A line is one event. Times are of the machine's clock that all processes
// share, see machineTime.
type line struct {
	at      time.Duration
	what    string
	process string // slot and life, such as 3/2: the third worker's second process
	token   int64  // 0: about no lease
	expires time.Duration
	text    string
}

// mark begins each line. A process that is killed in a write may leave a part of
// its line, on which the next one's follows.
const mark = "@"

func (l line) String() string {
	s := fmt.Sprintf("%d %s %s %d %d %s", l.at, l.what, l.process, l.token, l.expires, l.text)
	return strings.TrimRight(strings.NewReplacer("\n", "; ", mark, "(at)").Replace(s), " ")
}

// A journal is written by all processes at once: it is open for appending, and
// a line is one write.
type journal struct{ file *os.File }

func openJournal(path string) (journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return journal{f}, err
}

// write appends the line. A process that can't has no way to be judged, and
// ends.
func (j journal) write(l line) {
	if _, err := io.WriteString(j.file, mark+l.String()+"\n"); err != nil {
		fmt.Fprintln(os.Stderr, "torture: journal:", err)
		os.Exit(1)
	}
}

// parse returns the lines, and how many were torn: parts that another's line
// follows, or that can't be read.
func parse(text io.Reader) (lines []line, torn int, err error) {
	scanner := bufio.NewScanner(text)
	for scanner.Scan() {
		parts := strings.Split(scanner.Text(), mark)
		whole := parts[len(parts)-1]
		torn += len(parts) - 1
		if parts[0] == "" {
			torn--
		}
		var l line
		if _, err := fmt.Sscan(whole, &l.at, &l.what, &l.process, &l.token, &l.expires); err != nil {
			torn++
			continue
		}
		if fields := strings.SplitN(whole, " ", 6); len(fields) == 6 {
			l.text = fields[5]
		}
		lines = append(lines, l)
	}
	return lines, torn, scanner.Err()
}
