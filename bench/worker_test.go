package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gcslock/gcslock"
)

// A workerSetting is what a process with workers is told.
type workerSetting struct {
	URL      string
	First    int           // the number of its first worker
	Workers  int           // how many it has, through one Lock
	Quota    int           // sections of each worker; 0: until stdin ends
	Section  time.Duration // length of a section
	Handoffs int           // in a row, see gcslock.WithLocalHandoff; 0: none
}

// An entry of the journal is one section, or, as the last one of a process, the
// requests that it made.
type entry struct {
	Worker     int
	Begin, End int64   // in nanoseconds of the machine's clock
	Requests   *counts // in the last one only
}

// work runs a process's workers and writes its journal to stdout, after a line
// that says that it is ready and one on stdin that has it begin.
func work(text string) error {
	var setting workerSetting
	if err := json.Unmarshal([]byte(text), &setting); err != nil {
		return err
	}
	s, err := newSite(context.Background(), setting.URL)
	if err != nil {
		return err
	}
	var opts []gcslock.Option
	if setting.Handoffs > 0 {
		opts = append(opts, gcslock.WithLocalHandoff(setting.Handoffs, gcslock.DefaultTTL))
	}
	lock, err := gcslock.New(s.bucket, "lock", opts...)
	if err != nil {
		return err
	}
	stdin := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := stdin.ReadString('\n'); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	j := &journal{out: json.NewEncoder(os.Stdout)}
	if err := workAll(ctx, lock, setting, j); err != nil {
		return err
	}
	requests := s.counter.counts()
	return j.write(entry{Requests: &requests})
}

// workAll runs the workers until the last has ended.
func workAll(ctx context.Context, lock *gcslock.Lock, setting workerSetting, j *journal) error {
	var workers sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range setting.Workers {
		workers.Go(func() {
			if err := sections(ctx, lock, setting, setting.First+i, j); err != nil {
				failed.Store(&err)
			}
		})
	}
	workers.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// sections is one worker.
func sections(ctx context.Context, lock *gcslock.Lock, setting workerSetting, worker int, j *journal) error {
	for n := 0; setting.Quota == 0 || n < setting.Quota; n++ {
		lease, err := lock.Acquire(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		begin := time.Now()
		time.Sleep(setting.Section)
		end := time.Now()
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		// Not before the release, whose time counts.
		if err := j.write(entry{Worker: worker, Begin: begin.UnixNano(), End: end.UnixNano()}); err != nil {
			return err
		}
	}
	return nil
}

// A journal is safe for concurrent use.
type journal struct {
	mu  sync.Mutex // guards out
	out *json.Encoder
}

func (j *journal) write(e entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Encode(e)
}
