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
	URL     string
	First   int           // the number of its first worker
	Workers int           // how many it has, through one Lock
	Quota   int           // sections of each worker; 0: until stdin ends
	Section time.Duration // length of a section
}

// An entry of the journal is one section, or at the end of a process how many
// requests it made.
type entry struct {
	Worker     int
	Begin, End int64 // in nanoseconds of the machine's clock
	Requests   int64
}

// work runs a process's workers and writes its journal to stdout, after a line
// that says that it is ready and one to stdin that has it begin.
func work(text string) error {
	var setting workerSetting
	if err := json.Unmarshal([]byte(text), &setting); err != nil {
		return err
	}
	s, err := newSite(context.Background(), setting.URL)
	if err != nil {
		return err
	}
	lock, err := gcslock.New(s.bucket, "lock")
	if err != nil {
		return err
	}
	j := &journal{out: json.NewEncoder(os.Stdout)}
	stdin := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := stdin.ReadString('\n'); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if setting.Quota == 0 {
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
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
	fmt.Fprintln(os.Stderr, "reads", s.counter.reads.Load(), "creates", s.counter.creates.Load(), "deletes", s.counter.deletes.Load())
	return j.write(entry{Requests: s.requests.Load()})
}

// sections is one worker's.
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
		if err := j.write(entry{worker, begin.UnixNano(), end.UnixNano(), 0}); err != nil {
			return err
		}
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
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
