package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock/gcstest"
)

const bucketName = "bench"

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
func startServer(b *testing.B, setting serverSetting) string {
	b.Helper()
	p := startProcess(b, beServer, setting)
	b.Cleanup(func() { p.end(b) })
	return p.line(b)
}

// A site is a client's view of a server. It counts the client's requests.
type site struct {
	bucket   *storage.BucketHandle
	requests *atomic.Int64
	writes   *writes
	counter *counter
}

func newSite(ctx context.Context, url string) (site, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	counting := &counter{next: transport}
	client, err := storage.NewClient(ctx, option.WithoutAuthentication(), storage.WithJSONReads(),
		option.WithEndpoint(url+"/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: counting}))
	if err != nil {
		return site{}, err
	}
	return site{client.Bucket(bucketName), &counting.n, &counting.writes, counting}, nil
}

// A counter is a transport that counts what passes.
type counter struct {
	next   http.RoundTripper
	n      atomic.Int64
	reads, creates, deletes atomic.Int64
	writes writes
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	if m := map[string]*atomic.Int64{"GET": &c.reads, "POST": &c.creates, "DELETE": &c.deletes}[r.Method]; m != nil {
		m.Add(1)
	}
	c.writes.note(r.URL.Path, time.Now())
	return c.next.RoundTrip(r)
}
