package gcstest

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// upload is a resumable upload that has been started. Its preconditions come
// with the first request, and have to hold when it ends, too.
type upload struct {
	bucket, object string
	conditions     conditions
	uploaded       resource
}

// routeUpload finds out the kind of upload, and the name of the object, which is
// a parameter, or is in the body.
func (c *call) routeUpload() {
	c.op = Create
	query := c.url.Query()
	c.object = query.Get("name")
	switch {
	case query.Has("upload_id") && c.method != http.MethodDelete:
		c.kind = kindChunk
		return
	case c.method != http.MethodPost:
		c.op, c.kind = Other, kindOther
		return
	}
	var err error
	switch query.Get("uploadType") {
	case "media":
		c.kind = kindCreate
		c.uploaded = headerMetadata(c.header)
	case "multipart":
		c.kind = kindCreate
		c.uploaded, err = firstPart(c.header.Get("Content-Type"), c.body)
	case "resumable":
		c.kind = kindStart
		c.uploaded, err = decodeResource(c.body)
	default:
		c.refusal = invalidParameter("uploadType", query.Get("uploadType"))
	}
	if err != nil {
		c.refusal = invalid("Parse Error: " + err.Error())
	}
	if c.object == "" {
		c.object = c.uploaded.Name
	}
	if c.object == "" && c.refusal == nil {
		c.refusal = invalid("Required")
	}
}

// firstPart decodes the metadata of a multipart upload.
func firstPart(contentType string, body []byte) (resource, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return resource{}, err
	}
	part, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).NextPart()
	if err != nil {
		return resource{}, err
	}
	metadata, err := io.ReadAll(part)
	if err != nil {
		return resource{}, err
	}
	return decodeResource(metadata)
}

// headerMetadata is where a media upload has its metadata.
func headerMetadata(header http.Header) resource {
	r := resource{values: map[string]*string{}}
	for name := range header {
		if key, ok := strings.CutPrefix(name, "X-Goog-Meta-"); ok {
			value := header.Get(name)
			r.values[key] = &value
		}
	}
	return r
}

func (s *Server) startUpload(c *call, now time.Time) *reply {
	if no := s.mayCreate(c, now); no != nil {
		return no
	}
	rep := s.forward(c)
	location, err := url.Parse(rep.header.Get("Location"))
	if err != nil || !rep.ok() {
		return rep
	}
	id := location.Query().Get("upload_id")
	s.uploads[id] = upload{c.bucket, c.object, c.conditions, c.uploaded}
	return rep
}

func (s *Server) continueUpload(c *call, now time.Time) *reply {
	id := c.url.Query().Get("upload_id")
	u, known := s.uploads[id]
	if !known || !lastChunk(c.header.Get("Content-Range")) {
		return s.forward(c)
	}
	c.bucket, c.object, c.conditions, c.uploaded = u.bucket, u.object, u.conditions, u.uploaded
	if no := s.mayCreate(c, now); no != nil {
		delete(s.uploads, id)
		return no
	}
	if no := s.limit(c.key()); no != nil {
		return no
	}
	rep := s.forward(c)
	if !rep.ok() {
		return rep
	}
	delete(s.uploads, id)
	s.finish(c, rep, now)
	return rep
}

// lastChunk tells whether the fake takes the chunk with this Content-Range for
// the last: it knows the total and reaches it, or gives no range of its own.
func lastChunk(contentRange string) bool {
	span, total, _ := strings.Cut(strings.TrimPrefix(contentRange, "bytes "), "/")
	_, end, ranged := strings.Cut(span, "-")
	last, err := strconv.ParseInt(end, 10, 64)
	if !ranged || err != nil {
		return true
	}
	size, err := strconv.ParseInt(total, 10, 64)
	return err == nil && last+1 >= size
}
