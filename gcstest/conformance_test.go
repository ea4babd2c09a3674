package gcstest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock/gcstest"
)

// target is a Cloud Storage to probe, with a bucket b and a versioned bucket v.
type target struct {
	t      *testing.T
	client *storage.Client
	rt     http.RoundTripper
	url    string
}

func (g *target) object(name string) *storage.ObjectHandle { return object(g.client, name) }

func (g *target) create(name string) *storage.ObjectAttrs {
	g.t.Helper()
	return mustCreate(g.t, g.object(name))
}

func strictInProcess(t *testing.T) *target {
	s := gcstest.New("b")
	s.CreateBucket("v", gcstest.Versioned())
	return &target{t, client(t, s), s.Transport(), "http://gcstest.invalid"}
}

func strictListener(t *testing.T) *target {
	s := gcstest.New("b")
	s.CreateBucket("v", gcstest.Versioned())
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := l.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	return &target{t, c, rt, l.URL()}
}

func stockMemory(t *testing.T) *target { return stock(t, "") }

func stockFilesystem(t *testing.T) *target { return stock(t, t.TempDir()) }

func stock(t *testing.T, root string) *target {
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, StorageRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "b"})
	if root == "" {
		fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "v", VersioningEnabled: true})
	}
	c, err := storage.NewClient(t.Context(), option.WithHTTPClient(fake.HTTPClient()),
		option.WithEndpoint("http://gcstest.invalid/storage/v1/"), option.WithoutAuthentication(), storage.WithJSONReads())
	if err != nil {
		t.Fatal(err)
	}
	return &target{t, c, fake.HTTPClient().Transport, "http://gcstest.invalid"}
}

// probe looks at one behaviour, and puts it into words.
type probe struct {
	name string
	run  func(ctx context.Context, g *target) string
	// strict is what Cloud Storage does, and gcstest in both forms. memory and
	// filesystem are what stock fakestorage does; empty where it does the same.
	strict, memory, filesystem string
	// concurrent probes make the stock memory backend race within itself.
	concurrent bool
}

// TestConformance also fails when stock fakestorage becomes stricter: gcstest
// then has something to leave out, and the documentation something to correct.
func TestConformance(t *testing.T) {
	for _, on := range []struct {
		name string
		make func(*testing.T) *target
		want func(probe) string
	}{
		{"in process", strictInProcess, func(p probe) string { return p.strict }},
		{"listener", strictListener, func(p probe) string { return p.strict }},
		{"stock memory", stockMemory, func(p probe) string { return or(p.memory, p.strict) }},
		{"stock filesystem", stockFilesystem, func(p probe) string { return or(p.filesystem, p.strict) }},
	} {
		t.Run(on.name, func(t *testing.T) {
			for _, p := range probes {
				t.Run(p.name, func(t *testing.T) {
					if p.concurrent && raceDetector && on.name == "stock memory" {
						t.Skip("the stock memory backend has data races: run without -race")
					}
					if got, want := p.run(t.Context(), on.make(t)), on.want(p); got != want && want != anything {
						t.Errorf("got:  %s\nwant: %s", got, want)
					}
				})
			}
		})
	}
}

// anything is expected where the outcome depends on the machine.
const anything = "*"

func or(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

// said is the status of each error.
func said(errs ...error) string {
	var all []string
	for _, err := range errs {
		all = append(all, fmt.Sprint(status(err)))
	}
	return strings.Join(all, " ")
}

func attrsErr(_ *storage.ObjectAttrs, err error) error { return err }
