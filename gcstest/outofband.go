package gcstest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// Object is a version of an object. Put takes the writable part of it: Content,
// ContentType, CacheControl, Metadata and the holds.
type Object struct {
	Bucket, Name string
	// Generation and Metageneration are the version's.
	Generation, Metageneration int64
	Metadata                   map[string]string
	ContentType, CacheControl  string
	Content                    []byte
	// Created and Updated are by the server's clock. Deleted is when the
	// version became noncurrent, and zero for the live one.
	Created, Updated, Deleted time.Time
	// TemporaryHold and EventBasedHold have deletes and overwrites refused.
	TemporaryHold, EventBasedHold bool
}

// Put writes an object out of band, as a person or another client does: no
// fault, rate limit, retention policy or hold stops it, and it is not among the
// Requests. The object gets a new generation, and replaces the one that is
// there. It panics if the bucket doesn't exist.
func (s *Server) Put(bucket, object string, o Object) Object {
	key := objectKey{bucket, object}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasBucket(bucket) {
		panic("gcstest: Put: no bucket " + strconv.Quote(bucket))
	}
	s.fake.CreateObject(fakestorage.Object{
		ObjectAttrs: fakestorage.ObjectAttrs{
			BucketName: bucket, Name: object,
			ContentType: o.ContentType, CacheControl: o.CacheControl,
			Metadata: maps.Clone(o.Metadata),
		},
		Content: slices.Clone(o.Content),
	})
	s.adopt(key, s.now())
	live := s.history(key).live
	live.temporaryHold, live.eventHold = o.TemporaryHold, o.EventBasedHold
	s.changed()
	return s.snapshot(key, live)
}

// Edit changes the live object's custom metadata out of band: it sets the keys
// of md, and removes others. Even an edit that changes nothing moves
// metageneration and updated. false if there is no object.
func (s *Server) Edit(bucket, object string, md map[string]string, remove ...string) (Object, bool) {
	key := objectKey{bucket, object}
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.history(key).live
	if live == nil {
		return Object{}, false
	}
	obj := s.load(key, live)
	merged := map[string]string{}
	maps.Copy(merged, obj.Metadata)
	maps.Copy(merged, md)
	for _, name := range remove {
		delete(merged, name)
	}
	obj.Metadata = merged
	live.touch(s.now())
	s.store(obj, live)
	s.changed()
	return s.snapshot(key, live), true
}

// Delete deletes the live object out of band. A versioned bucket keeps a
// noncurrent version. false if there is no object.
func (s *Server) Delete(bucket, object string) bool {
	key := objectKey{bucket, object}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.history(key)
	if h.live == nil {
		return false
	}
	if rep := s.ask(http.MethodDelete, objectURL(bucket, object, url.Values{}), nil); !rep.ok() {
		panic("gcstest: Delete: " + string(rep.body)) // we and the fake no longer agree
	}
	h.retire(s.versioned(bucket), s.now())
	s.changed()
	return true
}

// Object returns the live object as it is now; false if there is none. It is a
// copy, and not among the Requests.
func (s *Server) Object(bucket, object string) (Object, bool) {
	key := objectKey{bucket, object}
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.history(key).live
	if live == nil {
		return Object{}, false
	}
	return s.snapshot(key, live), true
}

// Noncurrent returns the noncurrent versions of an object in the order in which
// they ceased to be live.
func (s *Server) Noncurrent(bucket, object string) []Object {
	key := objectKey{bucket, object}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Object
	for _, v := range s.history(key).noncurrent {
		all = append(all, s.snapshot(key, v))
	}
	return all
}

func (s *Server) snapshot(key objectKey, v *version) Object {
	obj := s.load(key, v)
	return Object{
		Bucket: key.bucket, Name: key.object,
		Generation: v.generation, Metageneration: v.metageneration,
		Metadata:    maps.Clone(obj.Metadata),
		ContentType: obj.ContentType, CacheControl: obj.CacheControl,
		Content: obj.Content,
		Created: v.created, Updated: v.updated, Deleted: v.deleted,
		TemporaryHold: v.temporaryHold, EventBasedHold: v.eventHold,
	}
}
