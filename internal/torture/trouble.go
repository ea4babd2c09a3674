package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// trouble is what happens to the workers: most of it to the one that holds the
// lock, because to the others it matters less. One that is stopped is mostly
// left alone until it goes on: what it does then is the point.
type trouble struct {
	slots  []*slot
	chance *rand.Rand
	holder *holder
}

// run makes trouble until calm ends, and returns when all of it is over.
func (t *trouble) run(calm context.Context) error {
	var pauses sync.WaitGroup
	defer pauses.Wait()
	for {
		select {
		case <-calm.Done():
			return nil
		case <-time.After(t.upTo(2500 * time.Millisecond)):
		}
		s, err := t.victim()
		if err != nil {
			return err
		}
		// Up to twice the ttl of the victim: most pauses and cuts of more
		// than a refresh interval cost it the lease.
		d := t.upTo(2 * s.plan.TTL)
		switch n := t.chance.IntN(10); {
		case n < 3:
			s.kill()
		case n < 7:
			pauses.Go(func() { s.pause(calm, d) })
		default:
			s.cut(d)
		}
	}
}

func (t *trouble) victim() (*slot, error) {
	process, err := t.holder.find()
	if err != nil {
		return nil, err
	}
	if process != "" && t.chance.IntN(3) > 0 {
		for _, s := range t.slots {
			if s.runs(process) {
				return s, nil
			}
		}
	}
	return t.slots[t.chance.IntN(len(t.slots))], nil
}

func (t *trouble) upTo(d time.Duration) time.Duration {
	return time.Duration(t.chance.Int64N(int64(d)))
}

// A holder follows the journal to know who is in a section.
type holder struct {
	journal *bufio.Reader
	part    string // of a line that has not been written to its end
	process string
}

func newHolder(journal io.Reader) *holder { return &holder{journal: bufio.NewReader(journal)} }

func (h *holder) find() (string, error) {
	for {
		text, err := h.journal.ReadString('\n')
		h.part += text
		if err == io.EOF {
			return h.process, nil
		}
		if err != nil {
			return "", err
		}
		lines, _, err := parse(strings.NewReader(h.part))
		if err != nil {
			return "", err
		}
		h.part = ""
		for _, l := range lines {
			switch {
			case l.what == begins:
				h.process = l.process
			case l.process == h.process && (l.what == ends || l.what == loses || l.what == kills):
				h.process = ""
			}
		}
	}
}
