package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// leaveLimit is how long a worker may take to end once it is asked to, in a
// time without trouble: it may be waiting for its one section behind all others.
const leaveLimit = 2 * time.Minute

// A slot is one worker's place: where its process is killed, the next one
// takes over.
type slot struct {
	number  int
	plan    workerPlan
	proxy   *proxy
	journal journal

	mu      sync.Mutex // guards the rest
	process string     // of the child; empty while there is none
	child   *child
	killed  bool // by us
	stopped bool // by us
}

// run keeps a worker in the slot until leave ends and the worker has left by
// itself. ctx ends everything.
func (s *slot) run(ctx, leave context.Context) error {
	for life := 1; ctx.Err() == nil; life++ {
		c, err := s.start(ctx, life)
		if err != nil {
			return err
		}
		left := make(chan struct{})
		go s.see(leave, c, left)
		<-c.ended
		close(left)
		s.mu.Lock()
		process, killed := s.process, s.killed
		s.process, s.child = "", nil
		s.mu.Unlock()
		switch {
		case killed:
		case c.err != nil && ctx.Err() == nil:
			s.journal.write(line{machineTime(), wrong, process, 0, 0, fmt.Sprintf("the worker ended with %v", c.err)})
			return nil
		case c.err == nil && leave.Err() != nil:
			return nil
		}
	}
	return nil
}

func (s *slot) start(ctx context.Context, life int) (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plan := s.plan
	plan.Process = fmt.Sprintf("%d/%d", s.number, life)
	plan.Seed += uint64(life)
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	c, err := startChild(ctx, roleWorker, string(text), nil)
	if err != nil {
		return nil, err
	}
	s.process, s.child, s.killed = plan.Process, c, false
	return c, nil
}

// see has the child leave when it is time to.
func (s *slot) see(leave context.Context, c *child, left <-chan struct{}) {
	select {
	case <-left:
		return
	case <-leave.Done():
		c.leave()
	}
	select {
	case <-left:
	case <-time.After(leaveLimit):
		s.journal.write(line{machineTime(), wrong, fmt.Sprintf("%d/-", s.number), 0, 0,
			fmt.Sprintf("the worker has not ended %v after it was asked to", leaveLimit)})
		c.kill()
	}
}

// now is the process in the slot, if there is one.
func (s *slot) now() (string, *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process, s.child
}

// kill kills the process. The time in the journal is before the kill: after
// that it may be dead. The line is written after that: none of its own follows.
func (s *slot) kill() {
	s.mu.Lock()
	process, c := s.process, s.child
	if c == nil || s.killed {
		s.mu.Unlock()
		return
	}
	at := machineTime()
	s.killed = c.cmd.Process.Kill() == nil
	killed := s.killed
	s.mu.Unlock()
	if killed {
		<-c.ended
		s.journal.write(line{at, kills, process, 0, 0, ""})
	}
}

// pause stops the process for so long, or until ctx ends.
func (s *slot) pause(ctx context.Context, d time.Duration) {
	process, c := s.now()
	if c == nil || stop(c.cmd.Process) != nil {
		return
	}
	s.setStopped(true)
	s.journal.write(line{machineTime(), pauses, process, 0, 0, d.String()})
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	s.setStopped(false)
	at := machineTime()
	if err := cont(c.cmd.Process); err == nil {
		s.journal.write(line{at, resumes, process, 0, 0, ""})
	} else if !errors.Is(err, os.ErrProcessDone) {
		s.journal.write(line{at, wrong, process, 0, 0, "it can't be resumed: " + err.Error()})
	}
}

func (s *slot) setStopped(stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = stopped
}

// runs tells whether it is this process that is in the slot, and not stopped.
func (s *slot) runs(process string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process == process && !s.stopped
}

// cut cuts it off from the server for so long.
func (s *slot) cut(d time.Duration) {
	process, c := s.now()
	if c == nil {
		return
	}
	s.proxy.cut(d)
	s.journal.write(line{machineTime(), cutsOff, process, 0, 0, d.String()})
}
