package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/fenced"
	"github.com/gcslock/gcslock/gcstest"
)

// A counter that goes on from run to run.
func Example() {
	ctx := context.Background()
	client, err := gcstest.New("jobs").Client(ctx) // or storage.NewClient
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	bucket := client.Bucket("jobs")
	lock, err := gcslock.New(bucket, "nightly/lock")
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		err := lock.Do(ctx, func(ctx context.Context, lease *gcslock.Lease) error {
			state, err := fenced.Open(ctx, lease, bucket.Object("nightly/runs"), fenced.WithInitial([]byte("0")))
			if err != nil {
				return err
			}
			return state.Update(ctx, func(old []byte) ([]byte, error) {
				runs, err := strconv.Atoi(string(old))
				fmt.Println("runs before this one:", runs)
				return strconv.AppendInt(nil, int64(runs)+1, 10), err
			})
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// runs before this one: 0
	// runs before this one: 1
	// runs before this one: 2
}

// The first holder's lock is taken from under it, as where its process is paused for
// too long. Its write is refused, although it does not know that yet.
func ExampleObject_Write() {
	ctx := context.Background()
	server := gcstest.New("jobs")
	client, err := server.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	bucket := client.Bucket("jobs")

	// hold acquires the lock and opens the state.
	hold := func() (*gcslock.Lease, *fenced.Object) {
		lock, err := gcslock.New(bucket, "nightly/lock")
		if err != nil {
			log.Fatal(err)
		}
		lease, err := lock.Acquire(ctx)
		if err != nil {
			log.Fatal(err)
		}
		state, err := fenced.Open(ctx, lease, bucket.Object("nightly/state"), fenced.WithInitial(nil))
		if err != nil {
			log.Fatal(err)
		}
		return lease, state
	}
	first, paused := hold()
	server.Delete("jobs", "nightly/lock")
	second, state := hold()

	fmt.Println("the first one's lease:", first.Err())
	err = paused.Write(ctx, []byte("from before the pause"))
	fmt.Println("its write is refused:", errors.Is(err, fenced.ErrFenced))
	fmt.Println("the second one's:", state.Write(ctx, []byte("newer")))
	content, err := state.Read(ctx)
	fmt.Printf("%s %v\n", content, err)
	_ = first.Release(ctx) // lost
	fmt.Println(second.Release(ctx))
	// Output:
	// the first one's lease: <nil>
	// its write is refused: true
	// the second one's: <nil>
	// newer <nil>
	// <nil>
}
