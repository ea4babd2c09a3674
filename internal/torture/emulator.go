package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

// emulate serves the bucket until stdin ends, with the objects that the file
// keeps. Its first line on stdout is its address, each further one how many
// requests it had since the last: the figure of one that is killed is lost.
func emulate(file string) error {
	server := gcstest.New(bucket)
	if err := inside.KeepIn.(func(*gcstest.Server, string) error)(server, file); err != nil {
		return err
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	fmt.Println(listener.Addr())

	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, os.Stdin) // any end of it is the end
	}()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return nil
		case <-tick.C:
			requests := len(server.Requests())
			server.ResetRequests()
			fmt.Println(requests)
		}
	}
}
