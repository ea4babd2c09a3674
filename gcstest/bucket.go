package gcstest

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// BucketOption is a property of a bucket, for CreateBucket.
type BucketOption interface{ apply(*bucketOptions) }

type bucketOptions struct {
	versioned bool
	retention time.Duration
}

type bucketOption func(*bucketOptions)

func (f bucketOption) apply(o *bucketOptions) { f(o) }

// Versioned has the bucket keep noncurrent versions of objects that are
// overwritten, or deleted without naming a generation.
func Versioned() BucketOption {
	return bucketOption(func(o *bucketOptions) { o.versioned = true })
}

// Retention has the bucket refuse, with 403, to delete or overwrite an object
// that is younger than d by the server's clock.
func Retention(d time.Duration) BucketOption {
	return bucketOption(func(o *bucketOptions) { o.retention = d })
}

// CreateBucket creates a bucket, or gives an existing one these options instead
// of those that it has; its objects stay. Names are not checked.
func (s *Server) CreateBucket(name string, opts ...BucketOption) {
	var o bucketOptions
	for _, opt := range opts {
		opt.apply(&o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasBucket(name) {
		body := fmt.Sprintf(`{"versioning":{"enabled":%t}}`, o.versioned)
		s.ask(http.MethodPatch, &url.URL{Path: "/storage/v1/b/" + name}, []byte(body))
	} else {
		s.fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: name, VersioningEnabled: o.versioned})
	}
	s.retention[name] = o.retention
}

// hasBucket asks the fake, because buckets come and go through its API as well.
func (s *Server) hasBucket(name string) bool {
	_, err := s.fake.Backend().GetBucket(name)
	return err == nil
}

func (s *Server) versioned(name string) bool {
	b, err := s.fake.Backend().GetBucket(name)
	return err == nil && b.VersioningEnabled
}

// forgetBucket follows the fake, which has deleted the bucket. There can be
// noncurrent versions in it, which the fake does not mind.
func (s *Server) forgetBucket(name string) {
	delete(s.retention, name)
	for key := range s.objects {
		if key.bucket == name {
			delete(s.objects, key)
		}
	}
}

// protected is the refusal to delete or overwrite v, or nil.
func (s *Server) protected(key objectKey, v *version, now time.Time) *reply {
	switch {
	case v == nil:
		return nil
	case v.temporaryHold:
		return held(key, "Temporary")
	case v.eventHold:
		return held(key, "Event-Based")
	case now.Before(v.retainedUntil(s.retention[key.bucket])):
		return retained(key, v.retainedUntil(s.retention[key.bucket]))
	}
	return nil
}

// retainedUntil is the zero time where there is no policy.
func (v *version) retainedUntil(retention time.Duration) time.Time {
	if retention <= 0 {
		return time.Time{}
	}
	return v.created.Add(retention)
}

// LimitRate allows one change (create, update or delete) of each object name in
// the given time, and answers others with 429, as Cloud Storage does beyond
// about one a second. 0, the default, is no limit. It goes by elapsed time
// (virtual time in a synctest bubble), whatever SetClock's clock says. Changes
// that are refused are not counted, nor are those made out of band.
func (s *Server) LimitRate(perObject time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perObject = perObject
}

func (s *Server) limit(key objectKey) *reply {
	last := s.history(key).changed
	if s.perObject > 0 && !last.IsZero() && time.Since(last) < s.perObject {
		return rateExceeded(key)
	}
	return nil
}
