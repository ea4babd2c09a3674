package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"cloud.google.com/go/storage"
)

const (
	// terraformSuffix ends the names of Terraform's and OpenTofu's lock objects:
	// PREFIX/WORKSPACE.tflock
	// (https://developer.hashicorp.com/terraform/language/backend/gcs).
	terraformSuffix = ".tflock"

	// terraformLimit bounds what is read of such an object's content, in bytes.
	terraformLimit = 64 << 10
)

// terraformInfo is the content of Terraform's lock object, as Terraform shows
// it. ID is not what force-unlock takes, which is the object's generation.
type terraformInfo struct {
	ID        string `json:"id,omitempty"`
	Operation string `json:"operation,omitempty"`
	Info      string `json:"info,omitempty"`
	Who       string `json:"who,omitempty"`
	Version   string `json:"version,omitempty"`
	Created   string `json:"created,omitempty"` // as written: a stranger's text
	Path      string `json:"path,omitempty"`
}

// readTerraform is the information that a lock of Terraform's has in its
// content; nil for all other objects, and where it can't be had, which is told.
// It costs a read.
func (l *looker) readTerraform(ctx context.Context, attrs *storage.ObjectAttrs) *terraformInfo {
	if !strings.HasSuffix(attrs.Name, terraformSuffix) || attrs.Size == 0 {
		return nil
	}
	text, err := l.readContent(ctx, attrs)
	// The names in the content differ from ours by their capitals alone, which
	// do not matter here.
	var info terraformInfo
	if err == nil {
		if err = json.Unmarshal(text, &info); err != nil {
			err = fmt.Errorf("it is not the JSON that Terraform writes: %w", err)
		}
	}
	if err != nil {
		l.warn("Terraform's lock information in " + l.lock + " can't be read: " + oneLine(err))
		return nil
	}
	return &info
}

// readContent is the content of this generation, up to terraformLimit.
func (l *looker) readContent(ctx context.Context, attrs *storage.ObjectAttrs) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	object := l.client.Bucket(l.bucket).Object(l.object).Generation(attrs.Generation)
	r, err := object.Retryer(storage.WithMaxAttempts(lookAttempts)).NewRangeReader(ctx, 0, terraformLimit)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil, errors.New("it is gone by now")
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// Of a compressed content Cloud Storage may send more than was asked for.
	return io.ReadAll(io.LimitReader(r, terraformLimit))
}
