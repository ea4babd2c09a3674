package gcslock

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// A roundTrip is a transport that is one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientOver is a storage client over a transport of the test's.
func clientOver(t testing.TB, transport http.RoundTripper) *storage.Client {
	t.Helper()
	client, err := storage.NewClient(context.Background(), option.WithoutAuthentication(),
		option.WithEndpoint("http://storage.invalid/storage/v1/"), option.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// breaksRule is Cloud Storage's rule that the name breaks, rune by rune
// (https://cloud.google.com/storage/docs/objects#naming); empty for a good name.
func breaksRule(name string) string {
	switch {
	case len(name) < 1 || len(name) > 1024:
		return "1 to 1024 bytes"
	case string([]rune(name)) != name:
		return "UTF-8"
	case name == "." || name == "..":
		return "not . or .."
	case strings.Index(name, ".well-known/acme-challenge/") == 0:
		return "not under .well-known/acme-challenge/"
	}
	for _, r := range name {
		if r == '\n' || r == '\r' {
			return "no carriage return or line feed"
		}
	}
	return ""
}

// FuzzObjectName: New takes the names that Cloud Storage takes, and no others;
// a bad name leads to no request, a good one reaches the server as it is.
func FuzzObjectName(f *testing.F) {
	for _, name := range []string{
		"", "o", "nightly/lock", "a b", "ünï/\u2028", "%2e%2e", "a?b#c&d=e+f", "\\", "//", "/", "a/../b", "./a", "\x00", "\x7f",
		".", "..", "...", "a\nb", "a\r", "\xff", "\xed\xa0\x80", "�", strings.Repeat("x", 1024), strings.Repeat("ü", 513),
		".well-known/acme-challenge/", ".well-known/acme-challenge/x", ".well-known/acme-challenge", "a/.well-known/acme-challenge/x",
	} {
		f.Add(name)
	}
	var sent []*url.URL
	bucket := clientOver(f, roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.URL)
		return nil, errors.New("no network here")
	})).Bucket("b")
	f.Fuzz(func(t *testing.T, name string) {
		sent = nil
		lock, err := New(bucket, name)
		rule := breaksRule(name)
		if (err != nil) != (rule != "") {
			t.Fatalf("%q: New says %v, the rule that it breaks is %q", name, err, rule)
		}
		older := NewLock(bucket, "id", name, DefaultTTL, nil)
		if err != nil {
			_, acquire := older.TryAcquire(t.Context())
			_, inspect := older.Inspect(t.Context())
			if acquire == nil || inspect == nil || len(sent) > 0 {
				t.Errorf("%q: %v and %v after %d requests", name, acquire, inspect, len(sent))
			}
			return
		}
		lock.read(t.Context())
		if len(sent) != 1 || sent[0].EscapedPath() != "/storage/v1/b/b/o/"+escaped(name) {
			t.Errorf("%q is asked for as %v", name, sent)
		}
	})
}

// escaped is a name as one part of a path, by RFC 3986 alone.
func escaped(name string) string {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; strings.IndexByte(unreserved, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
