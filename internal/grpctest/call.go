package grpctest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// A call is one call of the service as a request of the JSON API.
type call struct {
	method string
	url    url.URL
	query  url.Values
	header http.Header
	body   *bytes.Reader
}

// newCall is a request for an object, or with an empty name for the bucket's.
func newCall(method, bucket, object string) (*call, error) {
	bucket, err := bucketName(bucket)
	if err != nil {
		return nil, err
	}
	c := &call{
		method: method, query: url.Values{"projection": {"full"}}, header: http.Header{}, body: bytes.NewReader(nil),
		url: url.URL{Scheme: "http", Host: "grpctest.invalid", Path: "/storage/v1/b/" + bucket + "/o"},
	}
	if object != "" {
		c.url = *c.url.JoinPath(url.PathEscape(object))
	}
	return c, nil
}

// demand takes over the preconditions that the request has, also those of 0.
func (c *call) demand(m message) {
	for field, parameter := range preconditions {
		if m.has(field) {
			c.query.Set(parameter, strconv.FormatInt(m.number(field), 10))
		}
	}
}

func (c *call) selectGeneration(m message) {
	if generation := m.number("generation"); generation != 0 {
		c.query.Set("generation", strconv.FormatInt(generation, 10))
	}
}

func (c *call) send(resource any) error {
	body, err := json.Marshal(resource)
	if err != nil {
		return fmt.Errorf("grpctest: %w", err)
	}
	c.header.Set("Content-Type", "application/json")
	c.body = bytes.NewReader(body)
	return nil
}

// upload makes it an upload of resource and content in one request.
func (c *call) upload(resource any, contentType string, content []byte) error {
	attributes, err := json.Marshal(resource)
	if err != nil {
		return fmt.Errorf("grpctest: %w", err)
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for _, part := range []struct {
		contentType string
		content     []byte
	}{{"application/json", attributes}, {contentType, content}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part.contentType}})
		if err != nil {
			return fmt.Errorf("grpctest: %w", err)
		}
		if _, err := w.Write(part.content); err != nil {
			return fmt.Errorf("grpctest: %w", err)
		}
	}
	if err := parts.Close(); err != nil {
		return fmt.Errorf("grpctest: %w", err)
	}
	c.header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
	c.body = bytes.NewReader(body.Bytes())
	return nil
}

// A resource is an object in the JSON API's reply.
type resource struct {
	Name           string            `json:"name"`
	Bucket         string            `json:"bucket"`
	Generation     int64             `json:"generation,string"`
	Metageneration int64             `json:"metageneration,string"`
	Size           int64             `json:"size,string"`
	ContentType    string            `json:"contentType"`
	CacheControl   string            `json:"cacheControl"`
	Crc32c         string            `json:"crc32c"`
	TimeCreated    time.Time         `json:"timeCreated"`
	Updated        time.Time         `json:"updated"`
	Metadata       map[string]string `json:"metadata"`
}

// message is the same as google.storage.v2.Object.
func (r *resource) message() message {
	m := newMessage("Object")
	m.set("name", r.Name)
	m.set("bucket", "projects/_/buckets/"+r.Bucket)
	m.set("generation", r.Generation)
	m.set("metageneration", r.Metageneration)
	m.set("size", r.Size)
	m.set("content_type", r.ContentType)
	m.set("cache_control", r.CacheControl)
	m.set("create_time", timestamppb.New(r.TimeCreated))
	m.set("update_time", timestamppb.New(r.Updated))
	m.setTexts("metadata", r.Metadata)
	if sum, err := base64.StdEncoding.DecodeString(r.Crc32c); err == nil && len(sum) == 4 {
		sums := newMessage("ObjectChecksums")
		sums.set("crc32c", binary.BigEndian.Uint32(sum))
		m.set("checksums", sums.Interface())
	}
	return m
}
