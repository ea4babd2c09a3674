package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// bucketName is the bucket of all benchmarks but those with very many locks, which
// spread them over others, too: the server looks an object up one by one within its
// bucket, which would be what is measured.
const (
	bucketName   = "bench"
	otherBuckets = 100
)

func otherBucket(i int) string { return fmt.Sprintf("bench-%d", i%otherBuckets) }

// A serverSetting is what a server is told.
type serverSetting struct {
	Delay time.Duration // before each request is applied
	Rate  time.Duration // from one change of an object to the next, at the least
}

// serve serves until stdin ends.
func serve(text string) error {
	var setting serverSetting
	if err := json.Unmarshal([]byte(text), &setting); err != nil {
		return err
	}
	server := gcstest.New(bucketName)
	for i := range otherBuckets {
		server.CreateBucket(otherBucket(i))
	}
	server.LimitRate(setting.Rate)
	if setting.Delay > 0 {
		server.Inject(gcstest.Fault{Do: gcstest.Delay(setting.Delay)})
	}
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.URL())
	go func() {
		for range time.Tick(time.Second) {
			server.ResetRequests() // the log would fill the memory
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, listener.Close())
}

// startServer returns the server's URL. The server ends with the benchmark.
func startServer(tb testing.TB, setting serverSetting) string {
	tb.Helper()
	p := startProcess(tb, beServer, setting)
	return p.line(tb)
}
