package gcslock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/storage"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestClassify: every error that the client can return ends up in one of six
// outcomes, the same one for HTTP and for gRPC.
func TestClassify(t *testing.T) {
	failure := func(code int, reasons ...string) error {
		e := &googleapi.Error{Code: code}
		for _, r := range reasons {
			e.Errors = append(e.Errors, googleapi.ErrorItem{Reason: r})
		}
		return e
	}
	rpc := func(code codes.Code) error { return status.Error(code, "") }
	for _, tt := range []struct {
		op   operation
		err  error
		want outcome
	}{
		{opCreate, failure(412), mismatch},
		{opCreate, rpc(codes.FailedPrecondition), mismatch},
		{opCreate, rpc(codes.AlreadyExists), mismatch},
		{opUpdate, failure(412), mismatch},

		{opCreate, failure(404), permanent}, // the bucket
		{opCreate, rpc(codes.NotFound), permanent},
		{opRead, failure(404), absent},
		{opRead, rpc(codes.NotFound), absent},
		{opDelete, fmt.Errorf("%w: %w", storage.ErrObjectNotExist, failure(404)), absent},
		{opRead, fmt.Errorf("%w: %w", storage.ErrObjectNotExist, &googleapi.Error{Code: 404, Message: "The specified bucket does not exist."}), permanent},
		{opUpdate, status.Error(codes.NotFound, "The specified bucket does not exist."), permanent},

		{opUpdate, failure(429), refused},
		{opUpdate, rpc(codes.ResourceExhausted), refused},
		{opUpdate, failure(403, "userRateLimitExceeded"), refused},
		{opUpdate, failure(403, "rateLimitExceeded"), refused},

		{opDelete, failure(401), permanent},
		{opDelete, failure(403), permanent},
		{opDelete, failure(403, "retentionPolicyNotMet"), permanent},
		{opDelete, failure(400), permanent},
		{opDelete, rpc(codes.Unauthenticated), permanent},
		{opDelete, rpc(codes.PermissionDenied), permanent},
		{opDelete, rpc(codes.InvalidArgument), permanent},
		{opDelete, rpc(codes.Unimplemented), permanent},
		{opCreate, &url.Error{Op: "Post", Err: &oauth2.RetrieveError{Response: &http.Response{StatusCode: 400}}}, permanent},
		{opCreate, &url.Error{Op: "Post", Err: &auth.Error{Response: &http.Response{StatusCode: 401}}}, permanent},

		{opCreate, failure(408), unknown},
		{opCreate, failure(409), unknown},
		{opCreate, failure(500), unknown},
		{opCreate, failure(503), unknown},
		{opCreate, failure(302), unknown},
		{opCreate, failure(200), unknown}, // a success that could not be read
		{opCreate, rpc(codes.Unavailable), unknown},
		{opCreate, rpc(codes.Internal), unknown},
		{opCreate, rpc(codes.Aborted), unknown},
		{opCreate, rpc(codes.DeadlineExceeded), unknown},
		{opCreate, rpc(codes.Canceled), unknown},
		{opCreate, rpc(codes.Unknown), unknown},
		{opCreate, rpc(codes.DataLoss), unknown},
		{opCreate, context.DeadlineExceeded, unknown},
		{opCreate, context.Canceled, unknown},
		{opCreate, io.ErrUnexpectedEOF, unknown},
		{opCreate, errors.New("invalid character '<' looking for beginning of value"), unknown},
		{opCreate, &url.Error{Op: "Post", Err: &oauth2.RetrieveError{Response: &http.Response{StatusCode: 503}}}, unknown},
		{opCreate, &url.Error{Op: "Post", Err: &auth.Error{Response: &http.Response{StatusCode: 429}}}, unknown},
		{opCreate, &oauth2.RetrieveError{}, unknown},
	} {
		if got, _ := classify(tt.op, tt.err); got != tt.want {
			t.Errorf("%s: %v is %v, want %v", tt.op, tt.err, got, tt.want)
		}
	}
}

// TestHints: an error tells what to do about it.
func TestHints(t *testing.T) {
	s := &gcsStore{url: "gs://b/o"}
	forbidden := func(reason string) error {
		return &googleapi.Error{Code: 403, Message: "no", Errors: []googleapi.ErrorItem{{Reason: reason}}}
	}
	for _, tt := range []struct {
		op     operation
		err    error
		want   string
		denied bool
	}{
		{opCreate, forbidden("forbidden"), "create gs://b/o: HTTP 403: no (needs permission storage.objects.create)", true},
		{opRead, forbidden("forbidden"), "storage.objects.get", true},
		{opUpdate, forbidden("forbidden"), "storage.objects.update", true},
		{opDelete, forbidden("forbidden"), "storage.objects.delete", true},
		{opDelete, &googleapi.Error{Code: 401}, "credentials", true},
		{opDelete, forbidden("retentionPolicyNotMet"), "retention policy", true},
		{opDelete, forbidden("objectUnderActiveHold"), "hold", true},
		{opCreate, &googleapi.Error{Code: 404}, "bucket does not exist", false},
	} {
		r := s.failed(tt.op, tt.err)
		if !strings.Contains(r.err.Error(), tt.want) || isDenied(r.err) != tt.denied {
			t.Errorf("%s: %q, denied %v; want it to say %q, %v", tt.op, r.err, isDenied(r.err), tt.want, tt.denied)
		}
		var api *googleapi.Error
		if !errors.As(r.err, &api) {
			t.Errorf("%s: the client's error is lost in %v", tt.op, r.err)
		}
	}
}

// TestAttemptLimitIsNoContextError: an attempt that ran into its own limit must
// not look as if the caller's context had ended.
func TestAttemptLimitIsNoContextError(t *testing.T) {
	s := &gcsStore{url: "gs://b/o"}
	for _, err := range []error{context.DeadlineExceeded, &url.Error{Op: "Get", Err: context.Canceled}} {
		r := s.failed(opRead, err)
		if errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, context.Canceled) {
			t.Errorf("%v is a context's error", r.err)
		}
	}
}

func TestDate(t *testing.T) {
	header := func(date string) error { return &googleapi.Error{Header: http.Header{"Date": {date}}} }
	if got := dateOf(header("Mon, 30 Nov 2026 10:00:00 GMT")); !got.Equal(start) {
		t.Errorf("read %v, want %v", got, start)
	}
	for _, err := range []error{header(""), header("yesterday"), &googleapi.Error{}, status.Error(codes.NotFound, ""), io.EOF} {
		if got := dateOf(err); !got.Equal(time.Time{}) {
			t.Errorf("read %v from %v", got, err)
		}
	}
}

func TestVersionAfter(t *testing.T) {
	for _, tt := range []struct{ known, reply, want version }{
		{version{5, 1}, version{5, 2}, version{5, 2}},
		{version{5, 1}, version{5, 0}, version{5, 1}}, // stock fake-gcs-server, memory
		{version{5, 1}, version{6, 0}, version{6, 1}}, // the same, filesystem
	} {
		if got := tt.known.after(tt.reply); got != tt.want {
			t.Errorf("%v after %v is %v, want %v", tt.reply, tt.known, got, tt.want)
		}
	}
}
