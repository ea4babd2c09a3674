package gcstest_test

import (
	"context"
	"testing"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
)

func TestSmoke(t *testing.T) {
	s := gcstest.New("b")
	ctx := t.Context()
	c, err := s.Client(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o := c.Bucket("b").Object("dir/x y").Retryer(storage.WithPolicy(storage.RetryNever))
	w := o.If(storage.Conditions{DoesNotExist: true}).NewWriter(context.Background())
	w.ChunkSize = 0
	w.Metadata = map[string]string{"a": "1"}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", w.Attrs())
	a, err := o.Update(ctx, storage.ObjectAttrsToUpdate{Metadata: map[string]string{"b": "2"}})
	t.Logf("%+v %v", a, err)
	a, err = o.Attrs(ctx)
	t.Logf("%+v %v", a, err)
	err = o.Generation(a.Generation).If(storage.Conditions{GenerationMatch: a.Generation, MetagenerationMatch: 1}).Delete(ctx)
	t.Log(err)
	err = o.Generation(a.Generation).If(storage.Conditions{GenerationMatch: a.Generation, MetagenerationMatch: 2}).Delete(ctx)
	t.Log(err)
	_, err = o.Attrs(ctx)
	t.Log(err)
	for _, r := range s.Requests() {
		t.Log(r.Op, r.Method, r.URL, r.Status)
	}
}
