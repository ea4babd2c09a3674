package gcslock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	raw "google.golang.org/api/storage/v1"
)

// A hostileServer is a transport to a server that is broken or means ill. It watches
// what the library does: whatever the replies are, it deletes nothing but what
// they show to be stale or its own.
type hostileServer struct {
	*testing.T
	answer func(r *http.Request, nonce string) *http.Response
	most   int // requests in all, redirects apart
	// breaking: what is deleted is for the caller to say.
	breaking bool

	requests int
	nonces   []string  // of the creates so far
	dates    []toldAt  // that any reply told
	seen     []seenAt  // objects that reads showed
	written  []version // that replies to creates and updates of ours showed
}

type toldAt struct{ date, at time.Time }

type seenAt struct {
	stored
	at time.Time
}

// RoundTrip implements http.RoundTripper.
func (h *hostileServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := h.body(r)
	if err != nil {
		return nil, err
	}
	if r.Response == nil { // no redirect
		if h.requests++; h.requests > h.most {
			h.Errorf("more than %d requests, the last is %s %s", h.most, r.Method, r.URL)
			<-r.Context().Done() // so that it ends
			return nil, r.Context().Err()
		}
	}
	switch {
	case r.Method == http.MethodPost:
		if _, rest, ok := strings.Cut(string(body), `"nonce":"`); ok {
			h.nonces = append(h.nonces, rest[:2*nonceBytes])
		}
	case r.Method == http.MethodDelete && r.Response == nil: // else it is where the server wants it
		h.checkDelete(r)
	}
	nonce := ""
	if n := len(h.nonces); n > 0 {
		nonce = h.nonces[n-1]
	}
	response := h.answer(r, nonce)
	if response == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	h.note(r, response)
	return response, nil
}

func (h *hostileServer) body(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// note keeps what the reply shows. It reads as the client does.
func (h *hostileServer) note(r *http.Request, response *http.Response) {
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		h.dates = append(h.dates, toldAt{date, time.Now()})
	}
	reader, ok := response.Body.(interface{ again() io.Reader })
	if response.StatusCode/100 != 2 || !ok {
		return
	}
	var o raw.Object
	if json.NewDecoder(reader.again()).Decode(&o) != nil {
		return
	}
	obj := stored{version: version{o.Generation, o.Metageneration}, metadata: o.Metadata}
	if updated, err := time.Parse(time.RFC3339, o.Updated); err == nil {
		obj.updated = updated
	}
	asked := r
	for asked.Response != nil { // a redirect led here
		asked = asked.Response.Request
	}
	switch {
	case asked.Method == http.MethodGet:
		h.seen = append(h.seen, seenAt{obj, time.Now()})
	case slices.Contains(h.nonces, obj.metadata[keyNonce]):
		h.written = append(h.written, obj.version)
	}
}

// checkDelete asserts that the delete is for an object that the replies show to
// be stale or of our own making.
func (h *hostileServer) checkDelete(r *http.Request) {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
		if err != nil || n <= 0 {
			h.Errorf("%s %s: no %s", r.Method, r.URL, name)
		}
		return n
	}
	v := version{number("ifGenerationMatch"), number("ifMetagenerationMatch")}
	if number("generation") != v.generation {
		h.Errorf("%s %s: does not select the generation", r.Method, r.URL)
	}
	if !h.breaking && !h.made(v) && !h.stale(v) {
		h.Errorf("deletes %v, which none of %d replies shows to be stale", v, len(h.seen))
	}
}

// made tells whether a reply showed that the object is ours.
func (h *hostileServer) made(v version) bool {
	if slices.ContainsFunc(h.written, func(w version) bool { return w.generation == v.generation }) {
		return true
	}
	return slices.ContainsFunc(h.seen, func(s seenAt) bool {
		return s.version == v && slices.Contains(h.nonces, s.metadata[keyNonce])
	})
}

// stale tells whether the object was stale when it was last shown, by any Date
// that was told, or by watching.
func (h *hostileServer) stale(v version) bool {
	last := len(h.seen) - 1
	for last >= 0 && h.seen[last].version != v {
		last--
	}
	if last < 0 {
		return false
	}
	first, obj := last, h.seen[last]
	same := func(o seenAt) bool {
		return o.version == v && o.metadata[keyRefresh] == obj.metadata[keyRefresh] && o.metadata[keyExpiresAt] == obj.metadata[keyExpiresAt]
	}
	for first > 0 && same(h.seen[first-1]) {
		first--
	}
	o := oracle{metadata: obj.metadata, updated: obj.updated, ownTTL: DefaultTTL, watched: time.Since(h.seen[first].at)}
	stale := o.stale()
	for _, d := range h.dates {
		o.date, o.age = d.date, time.Since(d.at)
		stale = stale || o.stale()
	}
	return stale
}

// A replyBody is a reply's text, to be read by the client and by the test. What
// ends in an error was cut off.
type replyBody struct {
	io.Reader
	text string
	err  error // at its end; nil: io.EOF
}

func newReplyBody(text string, err error) *replyBody {
	b := &replyBody{text: text, err: err}
	b.Reader = b.again()
	return b
}

func (b *replyBody) again() io.Reader {
	if b.err == nil {
		return strings.NewReader(b.text)
	}
	return io.MultiReader(strings.NewReader(b.text), failing{b.err})
}

func (b *replyBody) Close() error { return nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// respond is a response to the request.
func respond(r *http.Request, status int, body io.ReadCloser, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		Status: fmt.Sprint(status, " ", http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: body, ContentLength: -1, Request: r,
	}
}

// resource is an object's JSON.
func resource(v version, updated time.Time, metadata map[string]string) string {
	text, err := json.Marshal(map[string]any{
		"generation": fmt.Sprint(v.generation), "metageneration": fmt.Sprint(v.metageneration),
		"updated": timestamp(updated), "metadata": metadata,
	})
	if err != nil {
		panic(err) // of strings there is none
	}
	return string(bytes.TrimSpace(text))
}
