package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The argument. Two leases were valid at once, by their own accounts, if their
// intervals of validity overlap. What is known of a lease's interval:
//
//   - It had begun at its begin line. The time of a line is read before the
//     lease is asked (Err), and a lease that was lost never becomes valid again:
//     one that is valid when it is asked was valid at the line's time.
//   - It lasted until the expiry of the last line at least, if the process
//     lived, and the section did not end, and no loss was told before that. The
//     process did not look in between, but the lease would have said so whenever
//     it was asked; a stopped process is one that may ask as soon as it goes on.
//     The expiry is rounded down, see worker.expiry.
//   - A refresh of which no line tells can only have prolonged it.
//
// So an interval from the begin line to the earliest of expiry, end, loss and
// kill, and to the last line that says valid if that is later, is one in which
// the lease was valid for certain. Two that overlap are no false alarm.
//
// What may be missed is what no line tells of: the instants between Acquire's
// return and the begin line, between the last line and the kill if a refresh
// fell there, and an expiry rounded down by too much. They are milliseconds, a
// hundredth of the margin that the protocol keeps, and a mistake in it does not
// choose its instant.
//
// A loss that is told before the lease's own expiry is a violation, too: nobody
// edits or deletes the object by hand here, and the emulator keeps it, so
// somebody has taken a lock that was held.

// A section is what the journal tells of one lease.
type section struct {
	process      string
	begin, until time.Duration
	expires      time.Duration
	valid        time.Duration // the last time at which it said so
	begun        bool
	over, lost   bool
	lines        []line
}

// figures are what a run came to.
type figures struct {
	sections, kills, pauses, cuts, restarts int
	takeovers, lost, unreleased, torn       int
	killedHolding, pausedHolding            int
	fewest, most                            int // sections of a worker
	longest                                 time.Duration
}

// checker reads the journal. Lines of one process are in order; those of two
// need not be.
type checker struct {
	sum    figures
	found  []string
	leases map[int64]*section  // by token
	open   map[string]*section // by process
	turns  map[string]int      // by slot
}

// check returns the figures and the violations in the journal of a run with so
// many workers.
func check(lines []line, torn, workers int) (figures, []string) {
	c := &checker{
		leases: map[int64]*section{},
		open:   map[string]*section{},
		turns:  map[string]int{},
	}
	for _, l := range lines {
		c.read(l)
	}
	c.sum.torn = torn
	if torn > c.sum.kills {
		c.violated(fmt.Sprintf("%d torn lines, where %d processes were killed", torn, c.sum.kills))
	}
	c.overlaps()
	c.progress(workers)
	return c.sum, c.found
}

func (c *checker) violated(what string, sections ...*section) {
	var b strings.Builder
	b.WriteString(what)
	for _, s := range sections {
		for i, l := range s.lines {
			if i < 2 || i >= len(s.lines)-6 {
				fmt.Fprintf(&b, "\n\t%v", l)
			} else if i == 2 {
				fmt.Fprintf(&b, "\n\t… %d more", len(s.lines)-8)
			}
		}
	}
	c.found = append(c.found, b.String())
}

// read takes one line in.
func (c *checker) read(l line) {
	switch l.what {
	case begins, works, ends, loses:
		c.readLease(l)
	case takesOver:
		c.sum.takeovers++
	case leaves:
		c.sum.unreleased++
	case wrong:
		c.violated(l.String())
	case kills:
		c.sum.kills++
		if s := c.open[l.process]; s != nil {
			c.sum.killedHolding++
			s.lines = append(s.lines, l)
			c.close(s, l)
		}
	case pauses:
		c.sum.pauses++
		if s := c.open[l.process]; s != nil {
			c.sum.pausedHolding++
			s.lines = append(s.lines, l)
		}
	case resumes:
		if s := c.open[l.process]; s != nil {
			s.lines = append(s.lines, l)
		}
	case cutsOff:
		c.sum.cuts++
	case restarts:
		c.sum.restarts++
	default:
		c.violated("a line of no known kind: " + l.String())
	}
}

// readLease takes in what a worker says of its lease.
func (c *checker) readLease(l line) {
	s := c.leases[l.token]
	if s == nil {
		s = &section{process: l.process}
		c.leases[l.token] = s
	}
	s.lines = append(s.lines, l)
	switch {
	case s.process != l.process || l.what == begins && s.begun:
		c.violated(fmt.Sprintf("token %d came twice", l.token), s)
		return
	case s.lost:
		c.violated(fmt.Sprintf("token %d goes on after its loss", l.token), s)
	case l.what != begins && l.what != loses && (!s.begun || s.over):
		c.violated(fmt.Sprintf("token %d goes on outside of its section", l.token), s)
	}
	switch l.what {
	case begins:
		s.begun, s.begin, s.valid, s.expires = true, l.at, l.at, l.expires
		c.open[l.process] = s
		c.sum.sections++
		c.turns[slotOf(l.process)]++
	case works:
		s.valid, s.expires = max(s.valid, l.at), l.expires
	case ends:
		s.valid, s.expires = max(s.valid, l.at), l.expires
		c.close(s, l)
	case loses:
		s.lost = true
		c.sum.lost++
		if l.at < l.expires {
			c.violated(fmt.Sprintf("token %d was lost %v before it expired by its own account", l.token, l.expires-l.at), s)
		}
		c.close(s, l)
	}
}

// close ends a section with the line that says so. The first such line counts.
func (c *checker) close(s *section, l line) {
	if s.over || !s.begun {
		return
	}
	s.over = true
	s.until = max(s.valid, min(s.expires, l.at))
	delete(c.open, s.process)
}

func slotOf(process string) string {
	slot, _, _ := strings.Cut(process, "/")
	return slot
}

// overlaps finds every section that begins while an earlier one is valid.
func (c *checker) overlaps() {
	var all []*section
	for _, s := range c.leases {
		if !s.begun {
			continue
		}
		if !s.over {
			s.until = max(s.valid, s.expires)
		}
		c.sum.longest = max(c.sum.longest, s.until-s.begin)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *section) int { return cmp.Compare(a.begin, b.begin) })
	var last *section // of those before, the one that is valid longest
	for _, s := range all {
		if last != nil && last.until > s.begin {
			c.violated(fmt.Sprintf("two leases were valid at once, for %v", min(last.until, s.until)-s.begin), last, s)
		}
		if last == nil || last.until < s.until {
			last = s
		}
	}
}

// progress: nobody starves.
func (c *checker) progress(workers int) {
	for slot := range workers {
		n := c.turns[fmt.Sprint(slot+1)]
		if n == 0 {
			c.violated(fmt.Sprintf("worker %d had no section", slot+1))
		}
		if slot == 0 {
			c.sum.fewest = n
		}
		c.sum.fewest, c.sum.most = min(c.sum.fewest, n), max(c.sum.most, n)
	}
}

func (f figures) String() string {
	return fmt.Sprintf(`%d sections, %d to %d of a worker, the longest %v
%d processes killed, %d of them in a section; %d stopped, %d in a section; %d cut off; the server killed %d times
%d takeovers, %d lost leases, %d failed releases, %d torn lines
`, f.sections, f.fewest, f.most, f.longest.Round(time.Millisecond),
		f.kills, f.killedHolding, f.pauses, f.pausedHolding, f.cuts, f.restarts,
		f.takeovers, f.lost, f.unreleased, f.torn)
}
