package leases_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/leases"
)

// localBucket is a bucket on a local server, in place of
//
//	client, err := storage.NewClient(ctx)
//	bucket := client.Bucket("jobs")
func localBucket() (bucket *storage.BucketHandle, closeClient func()) {
	client, err := gcstest.New("jobs").Client(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return client.Bucket("jobs"), func() { client.Close() }
}

// Two instances of a program, which are two processes in reality, and a rolling
// restart: the worker moves from one to the other.
func Example() {
	bucket, closeClient := localBucket()
	defer closeClient()
	running := make(chan string)
	instance := func(name string) (m *leases.Manager, sigterm func()) {
		ctx, cancel := context.WithCancel(context.Background()) // signal.NotifyContext in a program
		m = leases.NewManager(bucket, "workers", leases.Config{Enabled: true}, leases.WithLogger(slog.New(slog.DiscardHandler)))
		m.Go(ctx, "consumer", func(ctx context.Context) error {
			running <- name
			<-ctx.Done() // work that stops when ctx ends goes here
			return ctx.Err()
		})
		return m, cancel
	}

	old, stopOld := instance("old")
	fmt.Println(<-running, "runs the consumer")
	next, stopNext := instance("new")
	stopOld()
	fmt.Println("old has stopped:", old.Wait(10*time.Second))
	fmt.Println(<-running, "runs the consumer")
	stopNext()
	fmt.Println("new has stopped:", next.Wait(10*time.Second))
	// Output:
	// old runs the consumer
	// old has stopped: <nil>
	// new runs the consumer
	// new has stopped: <nil>
}

func ExampleManager_Run() {
	bucket, closeClient := localBucket()
	defer closeClient()
	m := leases.NewManager(bucket, "workers", leases.Config{Enabled: true}, leases.WithLogger(slog.New(slog.DiscardHandler)))
	// Blocks: until the context ends, or for a worker that is done until then.
	m.Run(context.Background(), "backfill", func(ctx context.Context) error {
		s := m.Status()[0]
		fmt.Println(s.Name, "is", s.State, "with the lease", s.Object)
		fmt.Println("the token is the lease's:", leases.Token(ctx) == s.Token)
		return nil
	})
	fmt.Println(m.Status()[0].State)
	// Output:
	// backfill is leading with the lease gs://jobs/workers/backfill
	// the token is the lease's: true
	// stopped
}
