package gcstest_test

import (
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func TestOutOfBand(t *testing.T) {
	s := gcstest.New("b")
	s.Inject(gcstest.Fault{Do: gcstest.FailStatus(503)})
	s.LimitRate(time.Hour)

	if _, ok := s.Object("b", "x"); ok {
		t.Error("an object that isn't there")
	}
	if _, ok := s.Edit("b", "x", nil); ok {
		t.Error("edited what isn't there")
	}
	if s.Delete("b", "x") {
		t.Error("deleted what isn't there")
	}

	put := s.Put("b", "x", gcstest.Object{
		Content: []byte("content"), ContentType: "text/plain", CacheControl: "no-store",
		Metadata: map[string]string{"a": "1", "b": "2"}, TemporaryHold: true,
	})
	o, _ := s.Object("b", "x")
	if o.Generation != put.Generation || o.Generation == 0 || o.Metageneration != 1 || string(o.Content) != "content" ||
		o.ContentType != "text/plain" || o.CacheControl != "no-store" || len(o.Metadata) != 2 || !o.TemporaryHold ||
		o.Bucket != "b" || o.Name != "x" || o.Created.IsZero() || !o.Updated.Equal(o.Created) {
		t.Errorf("put: %+v", o)
	}

	edited, ok := s.Edit("b", "x", map[string]string{"c": "3"}, "a")
	if !ok || edited.Generation != put.Generation || edited.Metageneration != 2 || !edited.Updated.After(put.Updated) ||
		len(edited.Metadata) != 2 || edited.Metadata["b"] != "2" || edited.Metadata["c"] != "3" || string(edited.Content) != "content" {
		t.Errorf("edit: %+v", edited)
	}
	if again, _ := s.Edit("b", "x", nil); again.Metageneration != 3 {
		t.Errorf("an edit of nothing: %+v", again)
	}

	if over := s.Put("b", "x", gcstest.Object{}); over.Generation == put.Generation || over.Metageneration != 1 || len(over.Metadata) != 0 {
		t.Errorf("overwrite: %+v", over)
	}
	if !s.Delete("b", "x") {
		t.Error("not deleted")
	}
	if _, ok := s.Object("b", "x"); ok {
		t.Error("still there")
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests logged", n)
	}
}

func TestWhatIsReturnedIsACopy(t *testing.T) {
	s := gcstest.New("b")
	md := map[string]string{"a": "1"}
	content := []byte("content")
	o := s.Put("b", "x", gcstest.Object{Metadata: md, Content: content})
	md["a"], content[0] = "2", 'X'
	o.Metadata["a"], o.Content[0] = "3", 'Y'
	if o, _ := s.Object("b", "x"); o.Metadata["a"] != "1" || string(o.Content) != "content" {
		t.Errorf("%+v", o)
	}
}

func TestPutWithoutBucket(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("accepted")
		}
	}()
	gcstest.New().Put("b", "x", gcstest.Object{})
}
