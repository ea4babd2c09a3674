package main

import (
	"fmt"
	"strings"
)

// parseTarget takes a gs://BUCKET/OBJECT apart. Whether the names are allowed
// is the library's to say.
func parseTarget(url string) (bucket, object string, err error) {
	rest, ok := strings.CutPrefix(url, "gs://")
	bucket, object, slash := strings.Cut(rest, "/")
	if !ok || !slash || bucket == "" || object == "" {
		return "", "", fmt.Errorf("%q does not name an object: want gs://BUCKET/OBJECT", url)
	}
	return bucket, object, nil
}

// parsePrefix takes gs://BUCKET, gs://BUCKET/ or gs://BUCKET/PREFIX apart.
func parsePrefix(url string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(url, "gs://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return "", "", fmt.Errorf("%q does not name a bucket: want gs://BUCKET or gs://BUCKET/PREFIX", url)
	}
	return bucket, prefix, nil
}
