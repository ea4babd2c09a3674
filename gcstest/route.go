package gcstest

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// ClientHeader names the client that sent a request, for Fault.Client and
// Request.Client. ClientAs sets it.
const ClientHeader = "X-Gcstest-Client"

// kind is how a request is carried out; finer than Op.
type kind int

const (
	kindOther kind = iota
	kindRead
	kindCreate // in one request: upload, copy, composition
	kindStart  // of a resumable upload
	kindChunk  // of a resumable upload
	kindUpdate
	kindDelete
)

// call is a request whose body has been read to its end, and what it asks for.
type call struct {
	op             Op
	kind           kind
	client         string
	bucket, object string
	selected       bool // by generation, which may be any number then
	generation     int64
	conditions     conditions
	uploaded       resource // what the body of an upload says of the object
	// refusal is the reply to a request that is malformed, or that this server
	// can't carry out as strictly as it promises.
	refusal *reply

	method string
	url    *url.URL // where the fake serves it
	host   string
	header http.Header
	body   []byte
}

// receive drains the body before anything else, so that no lock waits for a
// slow client, and so that over a listener the request's context ends when the
// client goes away.
func receive(r *http.Request) (*call, error) {
	c := &call{
		op: Other, client: r.Header.Get(ClientHeader),
		method: r.Method, url: cloneURL(r.URL), host: r.Host, header: r.Header.Clone(),
	}
	if c.host == "" {
		c.host = r.URL.Host
	}
	if c.header == nil {
		c.header = http.Header{}
	}
	if r.Body != nil {
		var err error
		if c.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	c.route()
	c.parse()
	return c, nil
}

func cloneURL(u *url.URL) *url.URL {
	clone := *u
	return &clone
}

// route finds out what the request does, to which object.
func (c *call) route() {
	path := c.url.EscapedPath()
	switch {
	case c.method == http.MethodOptions, path == "/_internal/healthcheck":
	case strings.HasPrefix(path, "/storage/v1/"):
		c.routeJSON(strings.TrimPrefix(path, "/storage/v1/"))
	case strings.HasPrefix(path, "/upload/storage/v1/b/"):
		c.bucket, _, _ = strings.Cut(strings.TrimPrefix(path, "/upload/storage/v1/b/"), "/")
		c.bucket = unescape(c.bucket)
		c.routeUpload()
	case strings.HasPrefix(path, "/download/storage/v1/b/") && c.reads():
		bucket, object, _ := strings.Cut(strings.TrimPrefix(path, "/download/storage/v1/b/"), "/o/")
		c.to(Get, kindRead, bucket, object)
	case c.reads() && !strings.HasPrefix(path, "/_internal/"):
		c.routeXML(strings.TrimPrefix(path, "/"))
	default:
		// Batches, the XML API's writes, and the fake's own switches would
		// change objects behind our back.
		c.refusal = notServed(c.method + " " + path)
	}
}

func (c *call) reads() bool { return c.method == http.MethodGet || c.method == http.MethodHead }

func (c *call) to(op Op, k kind, bucket, object string) {
	c.op, c.kind, c.bucket, c.object = op, k, unescape(bucket), unescape(object)
}

// routeJSON routes what follows /storage/v1/. Clients escape the slashes of an
// object's name, or don't.
func (c *call) routeJSON(path string) {
	path, isBucket := strings.CutPrefix(path, "b/")
	if !isBucket {
		return
	}
	bucket, rest, _ := strings.Cut(path, "/")
	c.bucket = unescape(bucket)
	if strings.HasPrefix(rest, "notificationConfigs") && !c.reads() {
		c.refusal = notServed("notifications") // they would call Pub/Sub
		return
	}
	object, isObject := strings.CutPrefix(rest, "o/")
	if !isObject || object == "" {
		return
	}
	override := c.method == http.MethodPost && c.header.Get("X-HTTP-Method-Override") == http.MethodPatch
	name, isACL := cutACL(object)
	switch {
	case isACL && c.method != http.MethodPatch && !override:
		c.object = unescape(name)
	case c.reads():
		c.to(Get, kindRead, bucket, object)
	case c.method == http.MethodDelete:
		c.to(Delete, kindDelete, bucket, object)
	case c.method == http.MethodPost && !override:
		c.routeCopy(bucket, object)
	case c.method == http.MethodPatch, c.method == http.MethodPut, override:
		c.to(Update, kindUpdate, bucket, object)
	}
}

// cutACL tells the access controls of an object from the object.
func cutACL(object string) (name string, found bool) {
	if name, found = strings.CutSuffix(object, "/acl"); found {
		return name, true
	}
	i := strings.LastIndex(object, "/acl/")
	if i < 0 || strings.Contains(object[i+len("/acl/"):], "/") {
		return object, false
	}
	return object[:i], true
}

// routeCopy routes rewrites, copies and compositions, which create their
// destination.
func (c *call) routeCopy(bucket, object string) {
	if destination, ok := strings.CutSuffix(object, "/compose"); ok {
		c.to(Create, kindCreate, bucket, destination)
		return
	}
	for _, verb := range []string{"/rewriteTo/b/", "/copyTo/b/"} {
		_, destination, ok := strings.Cut(object, verb)
		if !ok {
			continue
		}
		bucket, object, _ := strings.Cut(destination, "/o/")
		c.to(Create, kindCreate, bucket, object)
		return
	}
	c.refusal = notServed("POST to an object")
}

// routeXML serves a download in the XML API's style from the JSON API, whatever
// the host's name, so that clients need neither storage.WithJSONReads nor a
// public host.
func (c *call) routeXML(path string) {
	bucket, object, _ := strings.Cut(path, "/")
	if bucket == "" || object == "" {
		c.refusal = notServed(c.method + " /" + path)
		return
	}
	c.to(Get, kindRead, bucket, object)
	query := c.url.Query()
	query.Set("alt", "media")
	c.url = objectURL(c.bucket, c.object, query)
}

// parse reads what the request says in its parameters and in its body.
func (c *call) parse() {
	if c.refusal != nil {
		return
	}
	query := c.url.Query()
	if c.op == Other {
		c.refusal = unconditional(query)
		return
	}
	if query.Has("generation") {
		n, err := strconv.ParseInt(query.Get("generation"), 10, 64)
		if err != nil {
			c.refusal = invalidParameter("generation", query.Get("generation"))
			return
		}
		c.generation, c.selected = n, true
	}
	c.conditions, c.refusal = parseConditions(query, c.header)
}

func objectURL(bucket, object string, query url.Values) *url.URL {
	return &url.URL{
		Path:     "/storage/v1/b/" + bucket + "/o/" + object,
		RawPath:  "/storage/v1/b/" + url.PathEscape(bucket) + "/o/" + url.PathEscape(object),
		RawQuery: query.Encode(),
	}
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
