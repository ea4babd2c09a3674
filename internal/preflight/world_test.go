package preflight

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock/gcstest"
)

const object = "nightly/lock"

// A world is a Cloud Storage whose bucket has the settings that a test gives it.
type world struct {
	*testing.T
	server *gcstest.Server
	// settings are merged into the bucket's resource; policy is its IAM policy,
	// where it has one.
	settings map[string]any
	policy   string
	client   *storage.Client
	bucket   *storage.BucketHandle
	offset   time.Duration
}

// inWorld runs the test in a bubble, where latencies are what a fault says.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: gcstest.New("jobs"), settings: map[string]any{}}
		client, err := storage.NewClient(t.Context(),
			option.WithHTTPClient(&http.Client{Transport: w}), option.WithEndpoint("http://gcs.invalid/storage/v1/"))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		w.client, w.bucket = client, client.Bucket("jobs")
		test(w)
	})
}

// RoundTrip makes the world the client's transport.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.Path == "/storage/v1/b/jobs/iam" && w.policy != "" {
		return jsonReply(r, []byte(w.policy)), nil
	}
	response, err := w.server.Transport().RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK || r.Method != http.MethodGet || r.URL.Path != "/storage/v1/b/jobs" {
		return response, err
	}
	defer response.Body.Close()
	var resource map[string]any
	if err := json.NewDecoder(response.Body).Decode(&resource); err != nil {
		return nil, err
	}
	for key, value := range w.settings {
		resource[key] = value
	}
	body, err := json.Marshal(resource)
	return jsonReply(r, body), err
}

func jsonReply(r *http.Request, body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

func (w *world) target() Target {
	return Target{
		Bucket: w.bucket, Object: object,
		Offset: func() (time.Duration, time.Duration, bool) { return w.offset, time.Second / 2, true },
	}
}

func (w *world) run() *Report {
	w.Helper()
	report, err := Run(w.Context(), w.target())
	if err != nil {
		w.Fatal(err)
	}
	return report
}

// forbid takes a permission away.
func (w *world) forbid(op gcstest.Op, permission string) {
	w.server.Inject(gcstest.Fault{Op: op, Do: gcstest.Forbid(permission)})
}

// forbidSettings takes storage.buckets.get away.
func (w *world) forbidSettings() {
	w.server.Inject(gcstest.Fault{
		Match: func(r *http.Request) bool { return r.URL.Path == "/storage/v1/b/jobs" },
		Do:    gcstest.Forbid("storage.buckets.get"),
	})
}

// objects are all in the bucket, noncurrent ones too.
func (w *world) objects() (urls []string) {
	w.Helper()
	client, err := w.server.ClientAs(w.Context(), "test")
	if err != nil {
		w.Fatal(err)
	}
	defer client.Close()
	for objects := client.Bucket("jobs").Objects(w.Context(), &storage.Query{Versions: true}); ; {
		attrs, err := objects.Next()
		if errors.Is(err, iterator.Done) {
			return urls
		}
		if err != nil {
			w.Fatal(err)
		}
		urls = append(urls, "gs://jobs/"+attrs.Name)
	}
}

// requests are those of the check, counted by their kinds.
func (w *world) requests() (all int, byOp map[gcstest.Op]int) {
	byOp = map[gcstest.Op]int{}
	for _, r := range w.server.Requests() {
		byOp[r.Op]++
		all++
	}
	return all, byOp
}

// want fails unless the report has the finding, in this state, with each text
// somewhere in it.
func (w *world) want(report *Report, name string, state State, texts ...string) {
	w.Helper()
	i := slices.IndexFunc(report.Findings, func(f Finding) bool { return f.Name == name })
	if i < 0 {
		w.Errorf("nothing found of %q: %v", name, report.Findings)
		return
	}
	f := report.Findings[i]
	all := strings.Join(append([]string{f.Seen, f.Why}, f.Fix...), "\n")
	if f.State != state {
		w.Errorf("%s is %s, want %s: %s", name, f.State, state, all)
	}
	for _, text := range texts {
		if !strings.Contains(all, text) {
			w.Errorf("%s does not say %q: %s", name, text, all)
		}
	}
	if state == Fail && f.Why == "" {
		w.Errorf("%s does not say why: %s", name, all)
	}
}

func (w *world) wantNothingLeft(report *Report) {
	w.Helper()
	if left := w.objects(); len(left) > 0 || len(report.Left) > 0 {
		w.Errorf("left %v, told %v", left, report.Left)
	}
}

// dump is for failures.
func (r *Report) dump() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s\n", f.State, f.Name, f.Seen)
	}
	return b.String()
}

// cancelAt ends the context when the n-th request arrives, counted from 0.
func (w *world) cancelAt(n int) (context.Context, func()) {
	ctx, cancel := context.WithCancel(w.Context())
	seen := 0
	in := w.server.Inject(gcstest.Fault{
		Match: func(*http.Request) bool {
			if seen++; seen == n+1 {
				cancel()
			}
			return false
		},
		Do: gcstest.DropRequest(),
	})
	return ctx, func() { in.Remove(); cancel() }
}
