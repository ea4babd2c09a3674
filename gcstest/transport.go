package gcstest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// endpoint is the host that in-process clients think they talk to. It resolves
// nowhere (RFC 2606), and is never looked up.
const endpoint = "http://gcstest.invalid/storage/v1/"

type transport struct {
	server *Server
	client string
}

// Transport returns a transport that calls the server in process, whatever host
// the request names. It uses no connection and no goroutine, so that it works
// in a synctest bubble. A request ends with its context's error if that is over
// before the reply.
func (s *Server) Transport() http.RoundTripper { return transport{server: s} }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if t.client != "" {
		clone := *r
		clone.Header = r.Header.Clone()
		clone.Header.Set(ClientHeader, t.client)
		r = &clone
	}
	rep, err := t.server.exchange(r)
	if err != nil {
		return nil, err
	}
	return rep.response(r), nil
}

func (r *reply) response(request *http.Request) *http.Response {
	body := io.NopCloser(bytes.NewReader(r.body))
	if r.cut {
		body = io.NopCloser(io.MultiReader(bytes.NewReader(r.body[:len(r.body)/2]), brokenReader{}))
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)),
		StatusCode:    r.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        r.header.Clone(),
		Body:          body,
		ContentLength: int64(len(r.body)),
		Request:       request,
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Client returns a storage client that talks to the server in process, without
// credentials, whatever STORAGE_EMULATOR_HOST and the environment's credentials
// say. For a synctest bubble, make it inside. Options are added to the
// client's; one that sets another HTTP client leads elsewhere.
func (s *Server) Client(ctx context.Context, opts ...option.ClientOption) (*storage.Client, error) {
	return s.ClientAs(ctx, "", opts...)
}

// ClientAs is Client, whose requests carry a name, for Fault.Client and
// Request.Client: so that one of several clients can be cut off.
func (s *Server) ClientAs(ctx context.Context, name string, opts ...option.ClientOption) (*storage.Client, error) {
	return newClient(ctx, transport{server: s, client: name}, endpoint, opts)
}

func newClient(ctx context.Context, t http.RoundTripper, endpoint string, opts []option.ClientOption) (*storage.Client, error) {
	all := append([]option.ClientOption{
		option.WithHTTPClient(&http.Client{Transport: t}),
		option.WithEndpoint(endpoint),
		option.WithoutAuthentication(),
		storage.WithJSONReads(),
	}, opts...)
	client, err := storage.NewClient(ctx, all...)
	if err != nil {
		return nil, fmt.Errorf("gcstest: %w", err)
	}
	return client, nil
}

// ServeHTTP serves the request. It implements http.Handler, for a server of the
// caller's own; see Listen for one on loopback. Where a fault breaks the
// connection it hijacks and closes it, or else panics with
// http.ErrAbortHandler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rep, err := s.exchange(r)
	if err != nil {
		breakConnection(w)
		return
	}
	for name, values := range rep.header {
		w.Header()[name] = values
	}
	w.WriteHeader(rep.status)
	if rep.cut {
		// The half has to leave before the connection breaks. If it can't, the
		// client has gone away, and so it is with the whole body below.
		_, _ = w.Write(rep.body[:len(rep.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if len(rep.body) > 0 {
		_, _ = w.Write(rep.body)
	}
}

// breakConnection leaves the client with the first word of a reply. With none
// at all, net/http takes a connection that it has used before for an idle one
// that was closed, and sends a read again by itself: the fault would not be
// seen.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("HTTP/1.1 "))
}
