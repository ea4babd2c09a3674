package gcstest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
)

const objects = "http://gcstest.invalid/storage/v1/b/b/o/"

// The conformance table has the failures that the storage client can cause.
// These are the others.

func TestFailuresAreWordedAsCloudStorageWordsThem(t *testing.T) {
	s := gcstest.New("b")
	mustCreate(t, object(client(t, s), "x"))
	var body struct {
		Error struct {
			Code    int
			Message string
			Errors  []struct{ Message, Domain, Reason, LocationType, Location string }
		}
	}
	r := send(t, s.Transport(), "DELETE", objects+"x?ifGenerationMatch=1", "")
	if err := json.Unmarshal([]byte(r.body), &body); err != nil {
		t.Fatal(err)
	}
	e := body.Error.Errors[0]
	if r.status != 412 || body.Error.Code != 412 || body.Error.Message != e.Message || e.Domain != "global" ||
		e.Reason != "conditionNotMet" || e.LocationType != "header" || e.Location != "If-Match" {
		t.Errorf("%d %+v", r.status, body)
	}
}

func TestNotMatch(t *testing.T) {
	s := gcstest.New("b")
	a := mustCreate(t, object(client(t, s), "x"))
	generation := fmt.Sprint("ifGenerationNotMatch=", a.Generation)
	for _, c := range []struct {
		method, query string
		want          int
	}{
		{"GET", generation, 304},
		{"GET", generation + "&alt=media", 304},
		{"GET", "ifMetagenerationNotMatch=1", 304},
		{"GET", "ifMetagenerationNotMatch=2", 200},
		{"PATCH", generation, 412},
		{"PATCH", "ifMetagenerationNotMatch=1", 412},
		{"DELETE", generation, 412},
		{"DELETE", "ifMetagenerationNotMatch=1", 412},
		{"DELETE", "ifMetagenerationNotMatch=2", 204},
	} {
		r := send(t, s.Transport(), c.method, objects+"x?"+c.query, "{}")
		if r.status != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.query, r.status, c.want)
		}
		if c.want == 304 && r.body != "" {
			t.Errorf("%s %s: a 304 with a body", c.method, c.query)
		}
	}
}

func TestNotMatchOnUploads(t *testing.T) {
	s := gcstest.New("b")
	const url = "http://gcstest.invalid/upload/storage/v1/b/b/o?uploadType=media&name=x&ifGenerationNotMatch=0"
	if r := send(t, s.Transport(), "POST", url, ""); r.status != 412 {
		t.Errorf("only over another object: %d, want 412", r.status)
	}
	mustCreate(t, object(client(t, s), "x"))
	if r := send(t, s.Transport(), "POST", url, ""); r.status != 200 {
		t.Errorf("over another object: %d, want 200", r.status)
	}
}

func TestMalformedNumbers(t *testing.T) {
	s := gcstest.New("b")
	mustCreate(t, object(client(t, s), "x"))
	for _, name := range []string{
		"ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch", "ifMetagenerationNotMatch", "generation",
	} {
		for _, value := range []string{"one", "", "1.5", "99999999999999999999"} {
			for _, method := range []string{"GET", "PATCH", "DELETE"} {
				r := send(t, s.Transport(), method, objects+"x?"+name+"="+value, "{}")
				if r.status != 400 || !strings.Contains(r.body, name) {
					t.Errorf("%s %s=%q: %d %s", method, name, value, r.status, r.body)
				}
			}
		}
	}
	if _, ok := s.Object("b", "x"); !ok {
		t.Error("the object has gone")
	}
}

// A strict server that overlooks a precondition, or lets a request around its
// checks, is worse than none.
func TestWhatIsNotServedStrictlyIsRefused(t *testing.T) {
	s := gcstest.New("b")
	mustCreate(t, object(client(t, s), "x"))
	const host = "http://gcstest.invalid"
	for _, c := range []struct{ method, url, header, value string }{
		{"GET", objects + "x", "If-None-Match", `"etag"`},
		{"DELETE", objects + "x", "If-Match", `"etag"`},
		{"POST", objects + "x/rewriteTo/b/b/o/y?ifSourceGenerationMatch=1", "", ""},
		{"PATCH", host + "/storage/v1/b/b?ifMetagenerationMatch=9", "", ""},
		{"POST", host + "/batch/storage/v1", "Content-Type", "multipart/mixed; boundary=x"},
		{"PUT", host + "/b/x", "", ""},
		{"DELETE", host + "/b/x", "", ""},
		{"POST", host + "/_internal/delete_all", "", ""},
		{"POST", host + "/storage/v1/b/b/notificationConfigs", "", ""},
	} {
		r := send(t, s.Transport(), c.method, c.url, "{}", "X-Test", "1", or(c.header, "X-None"), c.value)
		if r.status != http.StatusNotImplemented {
			t.Errorf("%s %s: %d, want 501", c.method, c.url, r.status)
		}
	}
	if _, ok := s.Object("b", "x"); !ok {
		t.Error("the object has gone")
	}
}

// An upload's preconditions have to hold when it ends, whatever happened since
// it was started.
func TestResumableUploadIsCheckedAtItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		between func(*gcstest.Server)
		want    int
	}{
		"nothing between": {func(*gcstest.Server) {}, 200},
		"created between": {func(s *gcstest.Server) { s.Put("b", "x", gcstest.Object{}) }, 412},
	} {
		t.Run(name, func(t *testing.T) {
			s := gcstest.New("b")
			r := send(t, s.Transport(), "POST",
				"http://gcstest.invalid/upload/storage/v1/b/b/o?uploadType=resumable&ifGenerationMatch=0",
				`{"name":"x","metadata":{"a":"b"}}`, "Content-Type", "application/json")
			if r.status != 200 {
				t.Fatalf("start: %+v", r)
			}
			c.between(s)
			location := r.header.Get("Location")
			r = send(t, s.Transport(), "PUT", location, "half", "Content-Range", "bytes 0-3/*")
			if r.status != http.StatusPermanentRedirect {
				t.Errorf("half: %d, want 308", r.status)
			}
			r = send(t, s.Transport(), "PUT", location, "whole", "Content-Range", "bytes 4-8/9")
			if r.status != c.want {
				t.Errorf("end: %+v, want %d", r, c.want)
			}
			o, _ := s.Object("b", "x")
			if c.want == 200 && (string(o.Content) != "halfwhole" || o.Metadata["a"] != "b" || !strings.Contains(r.body, fmt.Sprint(o.Generation))) {
				t.Errorf("%+v, reply %s", o, r.body)
			}
		})
	}
}

func TestCopiesAreCreates(t *testing.T) {
	s := gcstest.New("b")
	c := client(t, s)
	from, to := object(c, "from"), object(c, "to")
	mustCreate(t, from)
	ifAbsent := to.If(storage.Conditions{DoesNotExist: true})
	for _, want := range []int{200, 412} {
		attrs, err := ifAbsent.CopierFrom(from).Run(t.Context())
		wantStatus(t, "copy", err, want)
		if want == 200 {
			if o, _ := s.Object("b", "to"); attrs.Generation != o.Generation || attrs.Metageneration != 1 {
				t.Errorf("reply %d/%d, object %d", attrs.Generation, attrs.Metageneration, o.Generation)
			}
		}
	}
	before, _ := s.Object("b", "to")
	composed, err := to.ComposerFrom(from, from).Run(t.Context())
	wantStatus(t, "compose", err, 200)
	if o, _ := s.Object("b", "to"); string(o.Content) != "contentcontent" || o.Generation == before.Generation || composed.Generation != o.Generation {
		t.Errorf("%+v", o)
	}
}
