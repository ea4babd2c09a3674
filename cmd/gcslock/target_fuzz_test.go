package main

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzParseTarget: what is taken apart is the whole of what was given, and what
// is refused is no gs:// with a bucket and an object.
func FuzzParseTarget(f *testing.F) {
	for _, url := range []string{
		"gs://jobs/nightly/lock", "gs://b/o", "gs://b//o", "gs://b/o/", "gs://b/ ?#%2f", "gs://b/gs://c/d",
		"", "gs://", "gs://b", "gs://b/", "gs:///o", "gs:////", "GS://b/o", "s3://b/o", "gs:/b/o", " gs://b/o", "b/o",
		"gs://b\n/o", "gs://b/\xff", "gs://\x1b[2J/o",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		bucket, object, err := parseTarget(url)
		if err == nil {
			if bucket == "" || object == "" || strings.Contains(bucket, "/") || "gs://"+bucket+"/"+object != url {
				t.Errorf("%q is bucket %q, object %q", url, bucket, object)
			}
			return
		}
		if bucket != "" || object != "" {
			t.Errorf("%q is refused, and yet bucket %q, object %q", url, bucket, object)
		}
		// The quotes keep what a stranger typed off the terminal's controls.
		if !strings.Contains(err.Error(), strconv.Quote(url)) {
			t.Errorf("the error for %q is %q, which does not name it", url, err)
		}
		if parts := strings.SplitN(url, "/", 4); len(parts) == 4 && parts[0] == "gs:" && parts[1] == "" && parts[2] != "" && parts[3] != "" {
			t.Errorf("%q is refused: %v", url, err)
		}
	})
}
