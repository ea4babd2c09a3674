package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
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
	// No pipe of exec's: waiting for the process would close that under the
	// reader.
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	c, err := startChild(ctx, roleEmulator, s.file, write)
	write.Close()
	if err != nil {
		read.Close()
		return err
	}
	s.child = c
	lines := bufio.NewScanner(read)
	if !lines.Scan() {
		<-c.ended
		read.Close()
		return fmt.Errorf("the emulator has not started: %w", c.err)
	}
	address := lines.Text()
	s.at.Store(&address)
	s.counting.Go(func() {
		defer read.Close()
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

// end stops it for good.
func (s *server) end() {
	s.stop()
	s.counting.Wait()
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
