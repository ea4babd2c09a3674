package fenced

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/gcslock/gcslock/internal/inside"
)

// The requests. Each is sent once: the storage client's own retries are off,
// because they hide whether an earlier attempt was applied.

// requestLimit bounds one request, so that one that hangs holds up nothing for
// longer. Contents get a second more for every MiB.
const requestLimit = 10 * time.Second

func limitFor(size int64) time.Duration {
	return requestLimit + time.Duration(size>>20)*time.Second
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// at is the handle for requests that ask for this version.
func (o *Object) at(v *storage.ObjectAttrs) *storage.ObjectHandle {
	return o.handle.If(storage.Conditions{GenerationMatch: v.Generation, MetagenerationMatch: v.Metageneration})
}

// fail turns the client's error into an outcome and words.
func (o *Object) fail(op string, err error) (*storage.ObjectAttrs, inside.Outcome, error) {
	outcome, err := outcomeOf(op, o.url, err)
	return nil, outcome, err
}

func outcomeOf(op, url string, err error) (inside.Outcome, error) {
	outcome, told := inside.Failed(op, url, err)
	if outcome == inside.Unknown && errors.Is(err, storage.ErrObjectNotExist) {
		outcome = inside.Absent // of a download in the XML API's style, which has no status
	}
	return outcome, told
}

// attrs reads the object's attributes; nil if it is absent.
func (o *Object) attrs(ctx context.Context) (*storage.ObjectAttrs, inside.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	attrs, err := o.handle.Attrs(ctx)
	if err != nil {
		return o.fail("read", err)
	}
	if !isVersion(attrs) {
		return o.fail("read", errNoVersion)
	}
	return attrs, inside.Done, nil
}

// patch writes the fence into the metadata of the version.
func (o *Object) patch(ctx context.Context, v *storage.ObjectAttrs) (*storage.ObjectAttrs, inside.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	attrs, err := o.at(v).Update(ctx, storage.ObjectAttrsToUpdate{Metadata: map[string]string{keyFence: o.fence}})
	switch {
	case err != nil:
		return o.fail("update", err)
	case attrs == nil || attrs.Generation != v.Generation || attrs.Metadata[keyFence] != o.fence:
		return o.fail("update", errNotOurs)
	case attrs.Metageneration <= v.Metageneration:
		// A stand-in. On it the claim would fence off nobody.
		_, _, err := o.fail("update", errNotStrict)
		return nil, inside.Permanent, err
	}
	return attrs, inside.Done, nil
}

// createEmpty makes the object that WithInitial fills.
func (o *Object) createEmpty(ctx context.Context) (*storage.ObjectAttrs, inside.Outcome, error) {
	w := o.handle.If(storage.Conditions{DoesNotExist: true})
	return o.upload(ctx, w, &storage.ObjectAttrs{
		ContentType: o.contentType,
		Metadata:    map[string]string{keyFence: o.fence, keyWrite: o.writeID(0), keyEmpty: "true"},
	}, nil)
}

// upload sends an object in one request.
func (o *Object) upload(ctx context.Context, to *storage.ObjectHandle, attrs *storage.ObjectAttrs, data []byte) (*storage.ObjectAttrs, inside.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limitFor(int64(len(data))))
	defer cancel()
	w := to.NewWriter(ctx)
	w.ChunkSize = 0 // one request, and no buffer
	w.ObjectAttrs = withName(w.ObjectAttrs, attrs)
	w.SendCRC32C, w.CRC32C = true, crc32.Checksum(data, castagnoli)
	if len(data) > 0 {
		// The error of a failed write is the request's, which Close returns.
		_, _ = w.Write(data)
	}
	return o.close(w)
}

// close ends an upload. What does not show this very write is no success.
func (o *Object) close(w *storage.Writer) (*storage.ObjectAttrs, inside.Outcome, error) {
	if err := w.Close(); err != nil {
		return o.fail("create", err)
	}
	made := w.Attrs()
	if !isVersion(made) || made.Metadata[keyWrite] != w.Metadata[keyWrite] {
		return o.fail("create", errNotOurs)
	}
	return made, inside.Done, nil
}

// withName gives the attributes the name that the writer has.
func withName(writer storage.ObjectAttrs, attrs *storage.ObjectAttrs) storage.ObjectAttrs {
	out := *attrs
	out.Name = writer.Name
	return out
}

// successor is what a write over the version carries over from it.
func (o *Object) successor(v *storage.ObjectAttrs, call int64) *storage.ObjectAttrs {
	metadata := maps.Clone(v.Metadata)
	delete(metadata, keyEmpty)
	metadata[keyFence], metadata[keyWrite] = o.fence, o.writeID(call)
	// The server names the version of the key, and takes the key's name.
	key, _, _ := strings.Cut(v.KMSKeyName, "/cryptoKeyVersions/")
	return &storage.ObjectAttrs{
		ContentType:        v.ContentType,
		ContentEncoding:    v.ContentEncoding, // never gzip, see claim
		ContentLanguage:    v.ContentLanguage,
		ContentDisposition: v.ContentDisposition,
		CacheControl:       v.CacheControl,
		CustomTime:         v.CustomTime,
		StorageClass:       v.StorageClass,
		KMSKeyName:         key,
		Metadata:           metadata,
	}
}

// download reads the content of the version, whole.
func (o *Object) download(ctx context.Context, v *storage.ObjectAttrs) ([]byte, inside.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limitFor(v.Size))
	defer cancel()
	r, err := o.at(v).NewReader(ctx)
	if err != nil {
		outcome, err := outcomeOf("read", o.url, err)
		return nil, outcome, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		outcome, err := outcomeOf("read", o.url, err)
		return nil, outcome, err
	}
	return data, inside.Done, nil
}

func isVersion(attrs *storage.ObjectAttrs) bool {
	return attrs != nil && attrs.Generation > 0 && attrs.Metageneration > 0
}

var (
	errNoVersion = errors.New("a success that tells no version of an object: not Cloud Storage's")
	errNotOurs   = errors.New("a success that shows another object than was written: not this request's")
	errGzip      = errors.New("its content encoding is gzip, which downloads undo and uploads do not do: keep the content compressed with another content type, and no encoding")
	errNotStrict = errors.New("the server does not move the metageneration with an update, so it cannot fence: not Cloud Storage (package gcstest can)")
)

// isGone tells that an upload which had been begun is not there any more.
func isGone(err error) bool {
	var api *googleapi.Error
	return errors.As(err, &api) && (api.Code == http.StatusNotFound || api.Code == http.StatusGone)
}
