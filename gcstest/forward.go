package gcstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// recorder is the fake's http.ResponseWriter.
type recorder struct {
	reply
	wrote bool
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, p...)
	return len(p), nil
}

// serveWith has a fake serve the request. The context is not the caller's: what
// has begun is finished, as on a server that the client can't see.
func serveWith(fake *fakestorage.Server, c *call) *reply {
	u := *c.url
	r := &http.Request{
		Method: c.method, URL: &u, Host: c.host, Header: c.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, ContentLength: int64(len(c.body)),
	}
	if len(c.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(c.body))
	}
	w := &recorder{reply: reply{header: http.Header{}}}
	fake.HTTPHandler().ServeHTTP(w, r.WithContext(context.Background()))
	w.WriteHeader(http.StatusOK)
	return &w.reply
}

func (s *Server) forward(c *call) *reply { return serveWith(s.fake, c) }

// ask sends the fake a request of our own.
func (s *Server) ask(method string, u *url.URL, body []byte) *reply {
	return s.forward(&call{method: method, url: u, header: http.Header{}, body: body})
}

// patch has the bench work out what becomes of old. The fake itself would
// change the live version whatever the request selects, and with the metadata's
// map it would change that of the version it was copied from.
func (s *Server) patch(c *call, old fakestorage.Object) (fakestorage.Object, *reply) {
	s.bench.CreateObject(old)
	rep := serveWith(s.bench, c)
	changed, err := s.bench.GetObject(c.bucket, c.object)
	if err != nil {
		panic("gcstest: " + err.Error()) // it was put there three lines ago
	}
	if err := s.bench.Backend().DeleteAllFiles(); err != nil {
		panic("gcstest: " + err.Error()) // in memory, nothing can fail
	}
	return changed, rep
}

// describe makes the version's attributes the body of a reply to a write, in
// whose place the fake sends other things, or an earlier state.
func (s *Server) describe(c *call, rep *reply, v *version) {
	query := url.Values{"generation": {strconv.FormatInt(v.generation, 10)}}
	if p := c.url.Query().Get("projection"); p != "" {
		query.Set("projection", p)
	}
	attrs := s.ask(http.MethodGet, objectURL(c.bucket, c.object, query), nil)
	s.correct(c, attrs)
	if body, ok := decodeObject(rep.body); ok && body["kind"] == "storage#rewriteResponse" {
		body["resource"] = json.RawMessage(attrs.body)
		rep.setBody(mustEncode(body))
		return
	}
	rep.setBody(attrs.body)
}

// correct writes what the fake does not know into the objects of a JSON reply.
func (s *Server) correct(c *call, rep *reply) {
	body, ok := decodeObject(rep.body)
	if !ok || c.url.Query().Get("alt") == "media" || c.method == http.MethodHead {
		return
	}
	switch body["kind"] {
	case "storage#object":
		s.correctObject(c, body)
	case "storage#bucket":
		s.correctBucket(body)
	case "storage#objects":
		items, _ := body["items"].([]any)
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				s.correctObject(c, object)
			}
		}
	default:
		return
	}
	rep.setBody(mustEncode(body))
}

// correctBucket adds the retention policy, in whole seconds as Cloud Storage has
// it.
func (s *Server) correctBucket(bucket map[string]any) {
	name, _ := bucket["name"].(string)
	if d := s.retention[name]; d > 0 {
		bucket["retentionPolicy"] = map[string]any{
			"retentionPeriod": strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10),
			"effectiveTime":   bucket["timeCreated"],
		}
	}
}

func (s *Server) correctObject(c *call, object map[string]any) {
	bucket, _ := object["bucket"].(string)
	name, _ := object["name"].(string)
	number, _ := object["generation"].(string)
	generation, _ := strconv.ParseInt(number, 10, 64)
	v := s.history(objectKey{bucket, name}).find(generation)
	if v == nil {
		return
	}
	object["id"] = fmt.Sprintf("%s/%s/%d", bucket, name, v.generation)
	object["metageneration"] = strconv.FormatInt(v.metageneration, 10)
	object["etag"] = fmt.Sprintf("%d/%d", v.generation, v.metageneration)
	object["timeCreated"] = stamp(v.created)
	object["updated"] = stamp(v.updated)
	object["timeStorageClassUpdated"] = stamp(v.created)
	if !v.deleted.IsZero() {
		object["timeDeleted"] = stamp(v.deleted)
	}
	if v.temporaryHold {
		object["temporaryHold"] = true
	}
	if v.eventHold {
		object["eventBasedHold"] = true
	}
	if until := v.retainedUntil(s.retention[bucket]); !until.IsZero() {
		object["retentionExpirationTime"] = stamp(until)
	}
	c.completeLinks(object)
}

// completeLinks puts the host that the client used into links without one.
func (c *call) completeLinks(object map[string]any) {
	scheme := c.url.Scheme
	if scheme == "" {
		scheme = "http"
	}
	for _, name := range []string{"selfLink", "mediaLink"} {
		if link, _ := object[name].(string); len(link) > 0 && link[0] == '/' {
			object[name] = scheme + "://" + c.host + link
		}
	}
}

// stamp has microseconds: some clients choke on more.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// decodeObject keeps numbers as they are.
func decodeObject(body []byte) (map[string]any, bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var object map[string]any
	err := dec.Decode(&object)
	return object, err == nil && object != nil
}
