package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

// A realCloud is gcstest, which the locks reach through the storage client and
// the same network: some schedules are run so, fifty times as dear, because
// what turns replies into outcomes can be wrong, too.
type realCloud struct {
	server   *gcstest.Server
	creators map[int64]*process
}

func newRealCloud(p plan) *realCloud {
	r := &realCloud{server: gcstest.New(bucketName), creators: make(map[int64]*process)}
	if p.rateLimited {
		r.server.LimitRate(rateLimit)
	}
	return r
}

// bucket is a process's own way to the server.
func (r *realCloud) bucket(p *process) *storage.BucketHandle {
	client, err := r.server.Client(p.ctx, option.WithHTTPClient(&http.Client{Transport: wire{p}}))
	if err != nil {
		panic(err) // it opens no connection
	}
	return client.Bucket(bucketName)
}

// mirror shows the server's object to the checks. A generation that is new is
// by whoever has just asked.
func (c *cloud) mirror(by *process) {
	o, ok := c.real.server.Object(bucketName, objectName)
	if !ok {
		c.object = nil
		return
	}
	if c.real.creators[o.Generation] == nil {
		c.real.creators[o.Generation] = by
	}
	c.object = &object{
		Object: inside.Object{
			Version:  inside.Version{Generation: o.Generation, Metageneration: o.Metageneration},
			Metadata: o.Metadata,
			Updated:  o.Updated,
		},
		creator: c.real.creators[o.Generation],
	}
}

// A wire carries a process's HTTP requests.
type wire struct{ process *process }

type httpReply struct {
	response *http.Response
	err      error
}

func (t wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	ops := map[string]string{http.MethodPost: "create", http.MethodGet: "read", http.MethodPatch: "update", http.MethodDelete: "delete"}
	cloud := &t.process.client.world.cloud
	reply := send(r.Context(), t.process, exchange[httpReply]{
		op:    ops[r.Method],
		apply: func() httpReply { return cloud.serve(t.process, r, body) },
		say:   func(a answer) httpReply { return sayHTTP(r, a) },
		outcome: func(h httpReply) string {
			if h.err != nil {
				return h.err.Error()
			}
			return h.response.Status
		},
	})
	return reply.response, reply.err
}

// serve has the server do what the request asks for, which it does whether its
// sender still waits or not.
func (c *cloud) serve(p *process, r *http.Request, body []byte) httpReply {
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := c.real.server.Transport().RoundTrip(r)
	if err == nil && !c.dates {
		response.Header.Del("Date")
	}
	c.mirror(p)
	return httpReply{response, err}
}

// sayHTTP is a reply that does not come from the server.
func sayHTTP(r *http.Request, a answer) httpReply {
	if a == silence {
		return httpReply{err: errCut}
	}
	status := [...]int{refusal: http.StatusTooManyRequests, failure: http.StatusServiceUnavailable, denial: http.StatusForbidden}[a]
	text := fmt.Sprintf(`{"error":{"code":%d,"message":"%s"}}`, status, http.StatusText(status))
	return httpReply{response: &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)), Request: r,
	}}
}
