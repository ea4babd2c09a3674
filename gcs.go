package gcslock

import (
	"context"
	"errors"
	"hash/crc32"
	"net/http"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/storage"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gcsStore is the lock object on Cloud Storage. This file is the one that knows
// the storage client.
type gcsStore struct {
	object      *storage.ObjectHandle // see newGCSStore
	url         string
	contentType string
	payload     []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newGCSStore has one handle for all calls. The handle's methods change copies of
// it, but for Retryer, which changes the configuration that all copies share: it is
// called here and nowhere else. The client's retries are off, because they hide
// whether an earlier attempt was applied, and know no limit but the context's.
func newGCSStore(bucket *storage.BucketHandle, object, url string, s *settings) *gcsStore {
	return &gcsStore{
		object: bucket.Object(object).Retryer(storage.WithPolicy(storage.RetryNever)),
		url:    url, contentType: s.contentType, payload: s.payload,
	}
}

func (s *gcsStore) create(ctx context.Context, metadata map[string]string) reply {
	w := s.object.If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
	w.ChunkSize = 0 // one request, and no upload buffer of 16 MiB
	w.ContentType = s.contentType
	if w.ContentType == "" {
		w.ContentType = "application/octet-stream"
	}
	w.CacheControl = "no-store" // or a public object is served from caches for an hour
	w.Metadata = metadata
	// A checksum of our own: the client that is left to compare the reply's
	// panics, in a goroutine of its own, where the reply is null.
	w.SendCRC32C, w.CRC32C = true, crc32.Checksum(s.payload, castagnoli)
	if len(s.payload) > 0 {
		// The error of a failed write is the request's, which Close returns.
		_, _ = w.Write(s.payload)
	}
	if err := w.Close(); err != nil {
		return s.failed(opCreate, err)
	}
	return s.succeeded(opCreate, w.Attrs(), metadata)
}

func (s *gcsStore) read(ctx context.Context) reply {
	attrs, err := s.object.Attrs(ctx)
	if err != nil {
		return s.failed(opRead, err)
	}
	return s.succeeded(opRead, attrs, nil)
}

// update names no generation in the request itself: on a versioned bucket that
// would find the noncurrent copy of a lock that somebody has deleted, and
// refresh it.
func (s *gcsStore) update(ctx context.Context, v version, metadata map[string]string) reply {
	attrs, err := s.object.
		If(storage.Conditions{GenerationMatch: v.generation, MetagenerationMatch: v.metageneration}).
		Update(ctx, storage.ObjectAttrsToUpdate{Metadata: metadata})
	if err != nil {
		return s.failed(opUpdate, err)
	}
	return s.succeeded(opUpdate, attrs, metadata)
}

// remove names the generation twice: as a precondition, and in the request,
// which leaves no noncurrent copy on a versioned bucket.
func (s *gcsStore) remove(ctx context.Context, v version) reply {
	err := s.object.Generation(v.generation).
		If(storage.Conditions{GenerationMatch: v.generation, MetagenerationMatch: v.metageneration}).
		Delete(ctx)
	if err != nil {
		return s.failed(opDelete, err)
	}
	return reply{}
}

var (
	errNoVersion = errors.New("a success that tells no version of an object: not Cloud Storage's")
	errNotOurs   = errors.New("a success that shows another object than was written: not this request's")
)

// succeeded takes the object from the reply to a success. Without a version it
// is none of Cloud Storage's, whatever it is of; and a precondition of 0 would
// be sent as none. The metageneration of an update may be 0, see version.after.
// A write's reply that does not show what was written is another request's, such
// as that of the GET that a redirect turns a POST into.
func (s *gcsStore) succeeded(op operation, attrs *storage.ObjectAttrs, written map[string]string) reply {
	if attrs == nil || attrs.Generation <= 0 || attrs.Metageneration < 0 || attrs.Metageneration == 0 && op != opUpdate {
		return s.failed(op, errNoVersion)
	}
	for _, key := range []string{keyNonce, keyRefresh} {
		if value, ok := written[key]; ok && attrs.Metadata[key] != value {
			return s.failed(op, errNotOurs)
		}
	}
	return reply{object: stored{
		version:  version{attrs.Generation, attrs.Metageneration},
		metadata: attrs.Metadata,
		updated:  presentable(attrs.Updated),
	}}
}

// failed turns the client's error into an outcome, and words it.
func (s *gcsStore) failed(op operation, err error) reply {
	outcome, code := classify(op, err)
	return reply{
		outcome: outcome,
		date:    dateOf(err),
		err: &requestError{
			op: op, url: s.url,
			hint:   hint(op, outcome, code, err),
			denied: code == http.StatusUnauthorized || code == http.StatusForbidden,
			err:    err,
		},
	}
}

// classify is the closed set of outcomes for HTTP and gRPC, with the HTTP
// status, or the one that the gRPC code stands for; 0 if there was no reply.
// What it does not know for certain is unknown.
func classify(op operation, err error) (outcome, int) {
	code := httpStatus(err)
	switch {
	case code == 0:
		return unknown, code
	case code == http.StatusPreconditionFailed:
		return mismatch, code
	case code == http.StatusNotFound:
		// A create can miss nothing but the bucket. Others tell the bucket's
		// absence from the object's by the words alone.
		if op == opCreate || bucketMissing(err) {
			return permanent, code
		}
		return absent, code
	case code == http.StatusTooManyRequests, code == http.StatusForbidden && rateLimited(err):
		return refused, code
	case code == http.StatusRequestTimeout, code == http.StatusConflict, code >= 500:
		// 409 is a conflict with a request under way, gRPC's ABORTED.
		return unknown, code
	case code >= 400:
		return permanent, code
	}
	return unknown, code // a redirect, or a success whose reply can't be read
}

func httpStatus(err error) int {
	var api *googleapi.Error
	if errors.As(err, &api) {
		return api.Code
	}
	// Credentials that a token source refuses to renew are refused before a
	// request for the object is sent. Its outages are like any other.
	var retrieve *oauth2.RetrieveError
	if errors.As(err, &retrieve) {
		return tokenStatus(retrieve.Response)
	}
	var token *auth.Error
	if errors.As(err, &token) {
		return tokenStatus(token.Response)
	}
	if s, ok := status.FromError(err); ok {
		if words, ok := strings.CutPrefix(s.Message(), grpcTokenFailure); ok {
			return grpcTokenStatus(words)
		}
		return grpcStatus(s.Code())
	}
	return 0
}

// tokenStatus is 401 where a token endpoint said a clear no.
func tokenStatus(r *http.Response) int {
	if r != nil && r.StatusCode >= 400 && r.StatusCode < 500 &&
		r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusRequestTimeout {
		return http.StatusUnauthorized
	}
	return 0
}

// grpcTokenFailure is what gRPC's own client begins with where the token source
// failed. The code is UNAUTHENTICATED then, whatever the reason, and the error
// that would tell it is not in the chain.
const grpcTokenFailure = "transport: per-RPC creds failed"

// tokenRefusal is how the texts of auth.Error and oauth2.RetrieveError tell a
// clear no: by a word of RFC 6749, or by the token endpoint's status.
var tokenRefusal = regexp.MustCompile(
	`(auth|oauth2): ("(invalid_\w+|unauthorized_client|unsupported_grant_type|access_denied)"|cannot fetch token: 4(0[0-79]|1|2[0-8]))`)

// grpcTokenStatus is tokenStatus by the words, which is all that gRPC leaves.
func grpcTokenStatus(words string) int {
	if tokenRefusal.MatchString(words) {
		return http.StatusUnauthorized
	}
	return 0
}

// grpcStatus is the HTTP status that a gRPC code stands for
// (google/rpc/code.proto), but for FAILED_PRECONDITION, with which Cloud
// Storage answers what it answers with 412 over HTTP.
func grpcStatus(code codes.Code) int {
	switch code {
	case codes.FailedPrecondition, codes.AlreadyExists:
		return http.StatusPreconditionFailed
	case codes.NotFound:
		return http.StatusNotFound
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.InvalidArgument, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.Unimplemented:
		// 501 over HTTP, but a method that isn't there will not appear.
		return http.StatusMethodNotAllowed
	case codes.Aborted:
		return http.StatusConflict
	case codes.Unavailable, codes.Internal:
		return http.StatusServiceUnavailable
	}
	return 0 // Canceled, DeadlineExceeded, Unknown, DataLoss
}

// bucketMissing goes by the server's words, which is all there is: both kinds
// of absence are a 404 with the same reason.
func bucketMissing(err error) bool {
	return errors.Is(err, storage.ErrBucketNotExist) ||
		strings.Contains(strings.ToLower(err.Error()), "bucket does not exist")
}

// rateLimited tells the 403 that means 429 from the one that means no.
func rateLimited(err error) bool {
	return hasReason(err, "rateLimitExceeded") || hasReason(err, "userRateLimitExceeded")
}

func hasReason(err error, reason string) bool {
	var api *googleapi.Error
	if !errors.As(err, &api) {
		return false
	}
	for _, item := range api.Errors {
		if item.Reason == reason {
			return true
		}
	}
	return false
}

// grpcSays goes by the server's words: gRPC has no reasons.
func grpcSays(err error, words string) bool {
	s, ok := status.FromError(err)
	return ok && strings.Contains(s.Message(), words)
}

// hint is what the person who reads the error can do about it.
func hint(op operation, outcome outcome, code int, err error) string {
	switch {
	case outcome != permanent:
		return ""
	case code == http.StatusNotFound:
		return "the bucket does not exist: check its name, or create it"
	case hasReason(err, "retentionPolicyNotMet"), code == http.StatusForbidden && grpcSays(err, "retention policy"):
		return "a retention policy keeps the object: use a bucket or a prefix without one for locks"
	case hasReason(err, "objectUnderActiveHold"), code == http.StatusForbidden && grpcSays(err, "hold and cannot be deleted"):
		return "a hold keeps the object: release the hold, and use a bucket without default holds for locks"
	case code == http.StatusUnauthorized:
		return "the credentials are missing, expired or revoked; needs permission " + op.permission()
	case code == http.StatusForbidden:
		return "needs permission " + op.permission()
	}
	return ""
}

// dateOf is the server's time from the error's reply. The client shows it
// nowhere else, and gRPC has none.
func dateOf(err error) time.Time {
	var api *googleapi.Error
	if !errors.As(err, &api) {
		return time.Time{}
	}
	date, err := http.ParseTime(api.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}
