package gcstest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/gcslock/gcslock/gcstest"
)

// client is an in-process one that is closed with the test.
func client(t *testing.T, s *gcstest.Server) *storage.Client {
	t.Helper()
	return clientAs(t, s, "")
}

func clientAs(t *testing.T, s *gcstest.Server, name string) *storage.Client {
	t.Helper()
	c, err := s.ClientAs(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// object is a handle with the client's retries off.
func object(c *storage.Client, name string) *storage.ObjectHandle {
	return c.Bucket("b").Object(name).Retryer(storage.WithPolicy(storage.RetryNever))
}

func create(ctx context.Context, o *storage.ObjectHandle, content string) (*storage.ObjectAttrs, error) {
	w := o.NewWriter(ctx)
	w.ChunkSize = 0
	if _, err := io.WriteString(w, content); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return w.Attrs(), nil
}

func mustCreate(t *testing.T, o *storage.ObjectHandle) *storage.ObjectAttrs {
	t.Helper()
	attrs, err := create(t.Context(), o, "content")
	if err != nil {
		t.Fatal(err)
	}
	return attrs
}

func set(key, value string) storage.ObjectAttrsToUpdate {
	return storage.ObjectAttrsToUpdate{Metadata: map[string]string{key: value}}
}

// status is the HTTP status in an error, 200 for none, and 0 for another error.
func status(err error) int {
	var api *googleapi.Error
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &api):
		return api.Code
	case errors.Is(err, storage.ErrObjectNotExist):
		return http.StatusNotFound
	}
	return 0
}

func wantStatus(t *testing.T, what string, err error, want int) {
	t.Helper()
	if got := status(err); got != want {
		t.Errorf("%s: %d (%v), want %d", what, got, err, want)
	}
}

// httpReply is a raw reply.
type httpReply struct {
	status int
	header http.Header
	body   string
}

// send makes a raw request in process.
func send(t *testing.T, rt http.RoundTripper, method, url, body string, header ...string) httpReply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return httpReply{resp.StatusCode, resp.Header, string(all)}
}
