package gcslock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
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

func ExampleLock_Acquire() {
	bucket, closeClient := localBucket()
	defer closeClient()
	lock, err := gcslock.New(bucket, "nightly/lock", gcslock.WithOwner("build-7"))
	if err != nil {
		log.Fatal(err)
	}
	// Wait for a minute at most. The lease outlives this context.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lease, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// Work that stops when lease.Context() ends goes here.
	fmt.Println("held:", lease.Err() == nil)

	// ErrLockAbandoned here means: it was lost meanwhile.
	fmt.Println("released:", lease.Release(context.Background()))
	_, err = lock.Inspect(context.Background())
	fmt.Println("free:", errors.Is(err, gcslock.ErrNotHeld))
	// Output:
	// held: true
	// released: <nil>
	// free: true
}

func ExampleLock_Do() {
	bucket, closeClient := localBucket()
	defer closeClient()
	lock, err := gcslock.New(bucket, "nightly/lock", gcslock.WithOwner("build-7"), gcslock.WithOperation("import"))
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context, lease *gcslock.Lease) error {
		info, err := lock.Inspect(ctx)
		if err != nil {
			return err
		}
		fmt.Println(info.Owner, "holds", info.URL(), "for the", info.Operation)
		fmt.Println("the token is the object's generation:", info.Generation == lease.Token())
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// build-7 holds gs://jobs/nightly/lock for the import
	// the token is the object's generation: true
	// done: <nil>
}

func ExampleLock_TryAcquire() {
	bucket, closeClient := localBucket()
	defer closeClient()
	ctx := context.Background()
	first, err := gcslock.New(bucket, "nightly/lock", gcslock.WithOwner("build-7"), gcslock.WithOperation("import"))
	if err != nil {
		log.Fatal(err)
	}
	lease, err := first.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	second, err := gcslock.New(bucket, "nightly/lock", gcslock.WithOwner("build-8"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = second.TryAcquire(ctx)
	var held *gcslock.HeldError
	if errors.As(err, &held) {
		fmt.Printf("%s is held by %q for %q\n", held.Holder.URL(), held.Holder.Owner, held.Holder.Operation)
	}
	// Output:
	// gs://jobs/nightly/lock is held by "build-7" for "import"
}

func ExampleNewLock() {
	bucket, closeClient := localBucket()
	defer closeClient()
	ctx := context.Background()
	lock := gcslock.NewLock(bucket, "worker-1", "shard/17", time.Minute, nil)
	if err := lock.Lock(ctx, 10*time.Second); err != nil {
		log.Fatal(err)
	}
	// Between two pieces of work, more often than every 54 s:
	if err := lock.RefreshLock(ctx); errors.Is(err, gcslock.ErrLockAbandoned) {
		log.Fatal("stop: ", err)
	}
	fmt.Println("unlocked:", lock.Unlock(ctx))
	// Output:
	// unlocked: <nil>
}
