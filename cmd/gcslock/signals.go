package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signals are those that ask the program to end.
type signals struct{ caught chan os.Signal }

func catchSignals() *signals {
	s := &signals{caught: make(chan os.Signal, 8)}
	signal.Notify(s.caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return s
}

func (s *signals) stop() { signal.Stop(s.caught) }

// context is one that ends with the first signal. stop returns that signal, or
// nil; signals that come later are left to be caught.
func (s *signals) context(parent context.Context) (ctx context.Context, stop func() os.Signal) {
	ctx, cancel := context.WithCancel(parent)
	var caught os.Signal
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case caught = <-s.caught:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() os.Signal {
		cancel()
		<-ended
		return caught
	}
}

func signalNumber(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
