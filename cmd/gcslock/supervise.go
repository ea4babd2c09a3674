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
	asked := false // to end
	lost := lease.Context().Done()
	var kill <-chan time.Time
	for {
		select {
		case s := <-signals.caught:
			c.signal(r.request(s))
			asked = true
		case <-lost:
			lost = nil // once
			after := killAfter(r.grace, r.ttl, time.Until(lease.Expires()))
			r.lossTold = true
			r.tell(message{Event: eventLost, Token: lease.Token(),
				Text: fmt.Sprintf("%s; stopping the command, and killing it in %v", oneLine(context.Cause(lease.Context())), after.Round(time.Millisecond))})
			if !r.interrupts || !asked {
				c.signal(r.request(syscall.SIGTERM))
			}
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

// request is the signal that asks the command to end, where s asks us. Terraform
// stops at SIGINT and saves its state, while its plugins ignore that; any other
// signal ends the plugins under it. A second SIGINT has it end without saving.
// That is for people to send: a loss adds none to one that was passed on.
func (r *runner) request(s os.Signal) os.Signal {
	if r.interrupts {
		return os.Interrupt
	}
	return s
}

// killAfter is how long the command may take to stop: the grace, or less, so
// that it is gone before others can have the lock. valid is how long the lease
// would be valid yet, less than nothing if that is over; others can come a tenth
// of the ttl after that. A fifth of this tenth is kept for the kill itself.
func killAfter(grace, ttl, valid time.Duration) time.Duration {
	return max(0, min(grace, valid+ttl/10-ttl/50))
}
