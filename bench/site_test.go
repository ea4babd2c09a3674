package bench

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// A site is a client's view of a server. It counts the client's requests.
type site struct {
	client   *storage.Client
	bucket   *storage.BucketHandle
	requests *atomic.Int64 // all of them
	writes   *writes
	counter  *counter
}

func newSite(ctx context.Context, url string) (site, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	counter := &counter{next: transport}
	client, err := storage.NewClient(ctx, option.WithoutAuthentication(), storage.WithJSONReads(),
		option.WithEndpoint(url+"/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: counter}))
	if err != nil {
		return site{}, err
	}
	return site{client, client.Bucket(bucketName), &counter.n, &counter.writes, counter}, nil
}

func benchSite(b *testing.B, setting serverSetting) site {
	b.Helper()
	s, err := newSite(b.Context(), startServer(b, setting))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// A counter is a transport that counts what passes, as it is on the wire: a
// client's own retries are requests, too.
type counter struct {
	next                             http.RoundTripper
	n                                atomic.Int64
	reads, creates, updates, deletes atomic.Int64
	writes                           writes
}

// counts are the requests of a client by what they ask for.
type counts struct{ Reads, Creates, Updates, Deletes int64 }

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	switch r.Method {
	case http.MethodGet:
		c.reads.Add(1)
	case http.MethodPost:
		c.creates.Add(1)
	case http.MethodPatch:
		c.updates.Add(1)
	case http.MethodDelete:
		c.deletes.Add(1)
	}
	c.writes.note(r.URL.Path, time.Now())
	return c.next.RoundTrip(r)
}

func (c *counter) counts() counts {
	return counts{c.reads.Load(), c.creates.Load(), c.updates.Load(), c.deletes.Load()}
}

func (c counts) plus(d counts) counts {
	return counts{c.Reads + d.Reads, c.Creates + d.Creates, c.Updates + d.Updates, c.Deletes + d.Deletes}
}

func (c counts) minus(d counts) counts {
	return counts{c.Reads - d.Reads, c.Creates - d.Creates, c.Updates - d.Updates, c.Deletes - d.Deletes}
}

func (c counts) total() int64 { return c.Reads + c.Creates + c.Updates + c.Deletes }

// report gives the counts for each of n of a thing, as metrics.
func (c counts) report(b *testing.B, n int, thing string) {
	each := func(count int64) float64 { return float64(count) / float64(n) }
	b.ReportMetric(each(c.total()), "requests/"+thing)
	b.ReportMetric(each(c.Reads), "reads/"+thing)
	b.ReportMetric(each(c.Creates), "creates/"+thing)
	b.ReportMetric(each(c.Deletes), "deletes/"+thing)
}
