package fenced

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// heapLimit is what streaming may take, whatever the size.
const heapLimit = 64 << 20

// TestStreamInBoundedMemory streams there and back through a server that keeps
// nothing.
func TestStreamInBoundedMemory(t *testing.T) {
	sink := &sink{server: gcstest.New(testBucket)}
	client, err := sink.server.Client(t.Context(), option.WithHTTPClient(&http.Client{Transport: sink}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sink.server.Put(testBucket, testState, gcstest.Object{})
	lock, err := gcslock.New(client.Bucket(testBucket), testLock)
	if err != nil {
		t.Fatal(err)
	}
	err = lock.Do(t.Context(), func(ctx context.Context, lease *gcslock.Lease) error {
		o, err := Open(ctx, lease, client.Bucket(testBucket).Object(testState))
		if err != nil {
			return err
		}
		if err := o.WriteFrom(ctx, &pattern{left: streamSize}); err != nil {
			return err
		}
		written := sink.peak
		sink.peak = 0
		r, err := o.NewReader(ctx)
		if err != nil {
			return err
		}
		n, err := io.Copy(&meter{sink: sink}, r)
		t.Logf("%d MiB: heap at most %.1f MiB while writing, %.1f MiB while reading", n>>20, mib(written), mib(sink.peak))
		if n != streamSize || sink.stored != streamSize {
			t.Errorf("stored %d bytes, read %d", sink.stored, n)
		}
		if peak := max(written, sink.peak); written == 0 || sink.peak == 0 || peak > heapLimit {
			t.Errorf("the heap grew to %.1f MiB", mib(peak))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

// A pattern is so many bytes.
type pattern struct{ left int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.left))
	p.left -= int64(n)
	return n, nil
}

// A sink is a server that takes the state's content, and gives one of the same size,
// without having it. All else it leaves to gcstest.
type sink struct {
	server *gcstest.Server
	object map[string]any // as the upload described it
	stored int64
	crc    uint32
	peak   uint64
}

var contentRange = regexp.MustCompile(`^bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)$`)

func (s *sink) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	header := http.Header{}
	switch {
	case query.Get("uploadType") == "resumable" && query.Get("upload_id") == "":
		s.object, s.stored, s.crc = nil, 0, 0
		header.Set("Location", r.URL.String()+"&upload_id=1")
		return answer(r, header, ""), json.NewDecoder(r.Body).Decode(&s.object)
	case query.Get("upload_id") != "":
		n, err := io.Copy(&meter{sink: s, crc: &s.crc}, r.Body)
		s.stored += n
		match := contentRange.FindStringSubmatch(r.Header.Get("Content-Range"))
		if err != nil || match == nil {
			return nil, fmt.Errorf("chunk %q: %v", r.Header.Get("Content-Range"), err)
		}
		if match[3] == "*" {
			header.Set("X-Http-Status-Code-Override", "308")
			return answer(r, header, ""), nil
		}
		s.object["generation"], s.object["metageneration"], s.object["size"] = "7", "1", match[3]
		text, err := json.Marshal(s.object)
		return answer(r, header, string(text)), err
	case query.Get("alt") == "media":
		header.Set("X-Goog-Generation", "7")
		header.Set("X-Goog-Metageneration", "1")
		header.Set("X-Goog-Hash", "crc32c="+base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, s.crc)))
		response := answer(r, header, "")
		response.Body, response.ContentLength = io.NopCloser(&pattern{left: s.stored}), s.stored
		return response, nil
	}
	return s.server.Transport().RoundTrip(r)
}

func answer(r *http.Request, header http.Header, body string) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// A meter discards what it is given, and looks at the heap every few MiB.
type meter struct {
	sink *sink
	crc  *uint32
	seen int64
}

func (m *meter) Write(b []byte) (int, error) {
	if m.crc != nil {
		*m.crc = crc32.Update(*m.crc, castagnoli, b)
	}
	const every = 4 << 20
	if m.seen/every != (m.seen+int64(len(b)))/every || m.seen == 0 {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		m.sink.peak = max(m.sink.peak, now.HeapAlloc)
	}
	m.seen += int64(len(b))
	return len(b), nil
}
