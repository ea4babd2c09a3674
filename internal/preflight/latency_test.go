package preflight

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock/gcstest"
)

// isSample chooses the requests on the objects of the latencies: the first probe
// is that of the permissions.
func isSample(r *http.Request) bool {
	return strings.Contains(r.URL.String(), ".gcslock-check-") && !strings.Contains(r.URL.String(), "self-check") &&
		!strings.HasSuffix(r.URL.Path, "-1")
}

// TestLatency: of each operation, and the ttl that follows from the worst ones.
func TestLatency(t *testing.T) {
	inWorld(t, func(w *world) {
		for op, d := range map[gcstest.Op]time.Duration{gcstest.Get: 100 * time.Millisecond, gcstest.Update: 600 * time.Millisecond, gcstest.Delete: 9 * time.Second} {
			w.server.Inject(gcstest.Fault{Op: op, Match: isSample, Skip: 9, Times: 1, Do: gcstest.Delay(d)})
			w.server.Inject(gcstest.Fault{Op: op, Match: isSample, Do: gcstest.Delay(d / 10)})
		}
		report := w.run()
		w.want(report, "read latency", OK, "median 10ms, worst 100ms of 10")
		w.want(report, "update latency", OK, "median 60ms, worst 600ms of 10")
		w.want(report, "delete latency", OK, "worst 9s of 10")
		if len(report.Latencies) != 4 || report.Latencies[2] != (Latency{"update", 10, 0, 60 * time.Millisecond, 600 * time.Millisecond}) {
			w.Errorf("%+v", report.Latencies)
		}
		// A delete does not count: 3 × (600 ms + 100 ms) × 30/7.
		if report.TTL != 9*time.Second {
			w.Errorf("ttl %v", report.TTL)
		}
	})
}

// TestSlow: a bucket for which the default ttl is too short.
func TestSlow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(gcstest.Fault{Op: gcstest.Update, Match: isSample, Times: 1, Do: gcstest.Delay(8 * time.Second)})
		w.want(w.run(), "ttl", Warn, "1m43s or more", "gcslock run --ttl 1m43s gs://jobs/nightly/lock -- COMMAND")
	})
}

// TestFailedSamples are told of, and are no latencies.
func TestFailedSamples(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(gcstest.Fault{Op: gcstest.Update, Match: isSample, Times: 2, Do: gcstest.FailStatus(503)})
		report := w.run()
		w.want(report, "update latency", Warn, "worst 0s of 10", "2 more failed", "HTTP 503")
		if report.TTL != leastTTL {
			w.Errorf("ttl %v", report.TTL)
		}
	})
	inWorld(t, func(w *world) {
		w.server.Inject(gcstest.Fault{Op: gcstest.Update, Match: isSample, Do: gcstest.FailStatus(503)})
		report := w.run()
		w.want(report, "update latency", Fail, "HTTP 503")
		if report.TTL != 0 {
			w.Errorf("ttl %v", report.TTL)
		}
		w.wantNothingLeft(report)
	})
}

// TestRateLimit: changes that come too fast are no failures.
func TestRateLimit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.LimitRate(time.Second)
		report := w.run()
		for _, f := range report.Findings {
			if f.State != OK {
				w.Errorf("%s is %s: %s", f.Name, f.State, f.Seen)
			}
		}
		w.wantNothingLeft(report)
	})
}

// TestTTLFor against the protocol's own numbers: with this ttl, a write and a
// read that take thrice the worst fit between a refresh that got no answer and
// the end of the validity, and with a second less they don't.
func TestTTLFor(t *testing.T) {
	fits := func(ttl, writeAndRead time.Duration) bool {
		validity, refresh := ttl-ttl/10, ttl/3
		return 2*refresh+3*writeAndRead <= validity
	}
	for _, w := range []time.Duration{0, 100 * time.Millisecond, 233 * time.Millisecond, time.Second, 7 * time.Second, 20 * time.Second} {
		ttl := ttlFor(w/2, w-w/2)
		if ttl < leastTTL || ttl%time.Second != 0 || !fits(ttl, w) || ttl > leastTTL && fits(ttl-time.Second, w) {
			t.Errorf("ttl %v for %v", ttl, w)
		}
	}
}

// stripped is a client of the world whose preconditions get lost.
func stripped(w *world) *storage.Client {
	client, err := storage.NewClient(context.WithoutCancel(w.Context()), option.WithEndpoint("http://gcs.invalid/storage/v1/"),
		option.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			query := r.URL.Query()
			query.Del("ifMetagenerationMatch")
			r.URL.RawQuery = query.Encode()
			return w.RoundTrip(r)
		})}))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
