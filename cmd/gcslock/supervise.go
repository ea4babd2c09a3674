package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/gcslock/gcslock"
)

// supervise runs the command under the lease and returns its exit code. The
// error is that of a command that could not be started.
func (r *runner) supervise(lease *gcslock.Lease, signals *signals) (int, error) {
	c := newChild(r.path, r.command, r.environment(lease))
	if err := c.start(); err != nil {
		return 0, err
	}
	lost := lease.Context().Done()
	var kill <-chan time.Time
	for {
		select {
		case s := <-signals.caught:
			r.ask(c, s)
		case <-lost:
			lost = nil // once
			after := killAfter(r.grace, r.ttl, time.Until(lease.Expires()))
			r.lossTold = true
			r.tell(message{Event: eventLost, Token: lease.Token(),
				Text: fmt.Sprintf("%s; stopping the command, and killing it in %v", oneLine(context.Cause(lease.Context())), after.Round(time.Millisecond))})
			r.ask(c, syscall.SIGTERM)
			kill = time.After(after)
		case <-kill:
			c.kill()
		case code := <-c.ended:
			if lost == nil {
				// What the command has left running has nothing to protect it.
				c.kill()
			}
			return code, nil
		}
	}
}

// ask asks the command to end, by the signal that asked us. Terraform gets SIGINT
// instead, at which it stops and saves its state: its plugins are in its group, and
// every signal but this one ends them under it. At a second SIGINT it does not wait
// for what it was doing. A person who sends one means that; a service that sends
// SIGTERM or SIGHUP after a while does not, and a loss does not either.
func (r *runner) ask(c *child, s os.Signal) {
	if !r.interrupts {
		c.signal(s)
		return
	}
	if s == os.Interrupt || !r.interrupted {
		c.signal(os.Interrupt)
	}
	r.interrupted = true
}

// killAfter is how long the command may take to stop: the grace, or less, so
// that it is gone before others can have the lock. valid is how long the lease
// would be valid yet, less than nothing if that is over; others can come a tenth
// of the ttl after that. A fifth of this tenth is kept for the kill itself.
func killAfter(grace, ttl, valid time.Duration) time.Duration {
	return max(0, min(grace, valid+ttl/10-ttl/50))
}
