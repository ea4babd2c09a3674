package gcstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/gcslock/gcslock/internal/inside"
)

func init() {
	inside.KeepIn = func(s *Server, file string) error { return s.keepIn(file) }
}

// state is what a server has to know to go on where another one was killed.
type state struct {
	Made    uint64   // generations given out, so that none comes twice
	Objects []Object // noncurrent before live, oldest first
}

// keepIn takes over the objects that the file holds, if it is there, and from
// then on writes every change to it before the reply leaves, so that a server
// that is killed at any instant has answered nothing that its successor does
// not know. The buckets must be there. Of an object it keeps what an Object
// tells; uploads under way, faults, the request log and the rate limit are not
// kept.
//
// All of it is written each time: it is meant for a few small objects.
func (s *Server) keepIn(file string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("gcstest: kept objects: %w", err)
	}
	var kept state
	if err == nil {
		if err := json.Unmarshal(text, &kept); err != nil {
			return fmt.Errorf("gcstest: kept objects: %s: %w", file, err)
		}
	}
	for _, o := range kept.Objects {
		if !s.hasBucket(o.Bucket) {
			return fmt.Errorf("gcstest: kept objects: %s: there is no bucket %q", file, o.Bucket)
		}
		s.restore(o)
	}
	s.made = max(s.made, kept.Made)
	s.keep = func() { s.writeState(file) }
	return nil
}

// restore puts a version back as it was.
func (s *Server) restore(o Object) {
	v := &version{
		generation: o.Generation, metageneration: o.Metageneration,
		created: o.Created, updated: o.Updated, deleted: o.Deleted,
		temporaryHold: o.TemporaryHold, eventHold: o.EventBasedHold,
	}
	key := objectKey{o.Bucket, o.Name}
	h := s.history(key)
	if v.deleted.IsZero() {
		h.live = v
	} else {
		h.noncurrent = append(h.noncurrent, v)
	}
	s.objects[key] = h
	s.store(fakestorage.Object{
		ObjectAttrs: fakestorage.ObjectAttrs{
			BucketName: o.Bucket, Name: o.Name,
			ContentType: o.ContentType, CacheControl: o.CacheControl,
			Metadata: maps.Clone(o.Metadata),
		},
		Content: o.Content,
	}, v)
}

// changed has the change kept, where that is asked for. With mu held.
func (s *Server) changed() {
	if s.keep != nil {
		s.keep()
	}
}

// writeState replaces the file in one step. It panics if it can't: what has
// been promised of the file would not hold, and the caller must not answer.
func (s *Server) writeState(file string) {
	kept := state{Made: s.made}
	for key, h := range s.objects {
		for _, v := range h.noncurrent {
			kept.Objects = append(kept.Objects, s.snapshot(key, v))
		}
		if h.live != nil {
			kept.Objects = append(kept.Objects, s.snapshot(key, h.live))
		}
	}
	err := os.WriteFile(file+".new", mustEncode(kept), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		panic("gcstest: kept objects: " + err.Error())
	}
}
