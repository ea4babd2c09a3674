package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
)

// lockInfoLimit is more than Terraform's lock information has, in bytes.
const lockInfoLimit = 64 << 10

// readLockInfo is the information in the content of a lock object, which is named
// with its generation. It costs a read.
func readLockInfo(ctx context.Context, object *storage.ObjectHandle) (*terraform.LockInfo, error) {
	r, err := object.Retryer(storage.WithMaxAttempts(lookAttempts)).NewRangeReader(ctx, 0, lockInfoLimit)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil, errors.New("it is gone by now")
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// Of a compressed content Cloud Storage may send more than was asked for.
	text, err := io.ReadAll(io.LimitReader(r, lockInfoLimit))
	if err != nil {
		return nil, err
	}
	return terraform.ParseLockInfo(text)
}

// readTerraform is what a lock of Terraform's has in its content; nil for all
// other objects, and where it can't be had, which is told.
func (l *looker) readTerraform(ctx context.Context, attrs *storage.ObjectAttrs) *terraform.LockInfo {
	if !strings.HasSuffix(attrs.Name, terraform.Suffix) || attrs.Size == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	info, err := readLockInfo(ctx, l.client.Bucket(l.bucket).Object(l.object).Generation(attrs.Generation))
	if err != nil {
		l.warn("Terraform's lock information in " + l.lock + " can't be read: " + oneLine(err))
	}
	return info
}
