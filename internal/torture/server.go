package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A server is the emulator in its process: where it is killed, the next one
// goes on with the same objects, on another port.
type server struct {
	file     string // where the objects are
	at       atomic.Pointer[string]
	requests atomic.Int64
	child    *child
	counting sync.WaitGroup
}

func (s *server) address() string { return *s.at.Load() }

func (s *server) start(ctx context.Context) error {
	c, err := startChild(ctx, roleEmulator, s.file)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(c.stdout)
	if !lines.Scan() {
		<-c.ended
		return fmt.Errorf("the emulator has not started: %v", c.err)
	}
	address := strings.Clone(lines.Text())
	s.at.Store(&address)
	s.child = c
	s.counting.Go(func() {
		for lines.Scan() {
			n, _ := strconv.ParseInt(lines.Text(), 10, 64) // a last line may be torn
			s.requests.Add(n)
		}
	})
	return nil
}

// stop kills it, as it may be killed at any time.
func (s *server) stop() {
	s.child.kill()
	none := ""
	s.at.Store(&none)
}

// trouble kills and restarts it until calm ends; then it is up.
func (s *server) trouble(ctx, calm context.Context, chance *rand.Rand, ttl time.Duration, j journal) error {
	for {
		select {
		case <-calm.Done():
			return nil
		case <-time.After(3*time.Second + time.Duration(chance.Int64N(int64(15*time.Second)))):
		}
		at := machineTime()
		s.stop()
		down := time.Duration(chance.Int64N(int64(ttl + ttl/5)))
		j.write(line{at, restarts, "emulator", 0, 0, down.String()})
		select {
		case <-calm.Done():
		case <-time.After(down):
		}
		if err := s.start(ctx); err != nil {
			return err
		}
	}
}
