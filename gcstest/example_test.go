package gcstest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// A server in the test's own process, and a storage client for it.
func Example() {
	ctx := context.Background()
	server := gcstest.New("jobs")
	client, err := server.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	object := client.Bucket("jobs").Object("marker")
	for range 2 {
		w := object.If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
		err := w.Close()
		var api *googleapi.Error
		if errors.As(err, &api) {
			fmt.Println("refused with", api.Code)
		} else {
			fmt.Println("created:", err)
		}
	}
	// Output:
	// created: <nil>
	// refused with 412
}

// A lock whose release was applied, and whose reply was lost.
func ExampleServer_Inject() {
	ctx := context.Background()
	server := gcstest.New("jobs")
	client, err := server.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := gcslock.New(client.Bucket("jobs"), "lock")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	server.Inject(gcstest.Fault{Op: gcstest.Delete, Times: 1, Do: gcstest.LoseReply()})
	fmt.Println("released:", lease.Release(ctx))
	for _, r := range server.Requests() {
		fmt.Println(r.Op, r.Status, "reply lost:", r.Lost)
	}
	// Output:
	// released: <nil>
	// create 200 reply lost: false
	// delete 204 reply lost: true
	// delete 404 reply lost: false
}

func ExampleSelfCheck() {
	ctx := context.Background()
	client, err := gcstest.New("jobs").Client(ctx) // or any other endpoint's
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(gcstest.SelfCheck(ctx, client.Bucket("jobs"), "self-check/"))
	// Output: <nil>
}
