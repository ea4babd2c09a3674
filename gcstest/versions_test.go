package gcstest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/gcslock/gcslock/gcstest"
)

func versionedServer() *gcstest.Server {
	s := gcstest.New()
	s.CreateBucket("b", gcstest.Versioned())
	return s
}

func TestDeleteOnVersionedBucket(t *testing.T) {
	s := versionedServer()
	o := object(client(t, s), "x")

	first := mustCreate(t, o)
	if err := o.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := s.Noncurrent("b", "x")
	if len(old) != 1 || old[0].Generation != first.Generation || old[0].Deleted.IsZero() || string(old[0].Content) != "content" {
		t.Fatalf("without the generation: noncurrent versions %+v", old)
	}
	if _, err := o.Attrs(t.Context()); status(err) != 404 {
		t.Errorf("the deleted object: %v", err)
	}

	second := mustCreate(t, o)
	if err := o.Generation(second.Generation).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if old := s.Noncurrent("b", "x"); len(old) != 1 || old[0].Generation != first.Generation {
		t.Errorf("with the generation: noncurrent versions %+v", old)
	}

	if err := o.Generation(first.Generation).Delete(t.Context()); err != nil {
		t.Errorf("a noncurrent version: %v", err)
	}
	if old := s.Noncurrent("b", "x"); len(old) != 0 {
		t.Errorf("noncurrent versions %+v", old)
	}
	wantStatus(t, "once more", o.Generation(first.Generation).Delete(t.Context()), 404)
}

func TestOverwriteOnVersionedBucket(t *testing.T) {
	s := versionedServer()
	o := object(client(t, s), "x")
	first := mustCreate(t, o)
	second := mustCreate(t, o)
	s.Put("b", "x", gcstest.Object{Content: []byte("third")})
	old := s.Noncurrent("b", "x")
	if len(old) != 2 || old[0].Generation != first.Generation || old[1].Generation != second.Generation {
		t.Errorf("%+v", old)
	}
}

func TestNoVersionsWithoutVersioning(t *testing.T) {
	s := gcstest.New("b")
	o := object(client(t, s), "x")
	first := mustCreate(t, o)
	mustCreate(t, o)
	if err := o.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if old := s.Noncurrent("b", "x"); len(old) != 0 {
		t.Errorf("%+v", old)
	}
	_, err := o.Generation(first.Generation).Attrs(t.Context())
	wantStatus(t, "the first generation", err, 404)
}

// Preconditions are about the version that the request selects. An update that
// selects a lock's old version refreshes what nobody holds.
func TestSelectedNoncurrentVersion(t *testing.T) {
	s := versionedServer()
	o := object(client(t, s), "x")
	first := mustCreate(t, o)
	second := mustCreate(t, o)
	old := o.Generation(first.Generation)

	attrs, err := old.If(storage.Conditions{GenerationMatch: first.Generation, MetagenerationMatch: 1}).Update(t.Context(), set("a", "b"))
	if err != nil || attrs.Generation != first.Generation || attrs.Metageneration != 2 || attrs.Metadata["a"] != "b" {
		t.Errorf("update: %+v, %v", attrs, err)
	}
	if o, _ := s.Object("b", "x"); o.Generation != second.Generation || o.Metageneration != 1 || len(o.Metadata) != 0 {
		t.Errorf("the live version: %+v", o)
	}
	if v := s.Noncurrent("b", "x"); len(v) != 1 || v[0].Metageneration != 2 || v[0].Metadata["a"] != "b" {
		t.Errorf("the noncurrent version: %+v", v)
	}
	attrs, err = old.Attrs(t.Context())
	if err != nil || attrs.Metageneration != 2 || attrs.Deleted.IsZero() {
		t.Errorf("read: %+v, %v", attrs, err)
	}
	wantStatus(t, "delete under the live version's number",
		old.If(storage.Conditions{GenerationMatch: second.Generation}).Delete(t.Context()), 412)
	wantStatus(t, "delete", old.If(storage.Conditions{MetagenerationMatch: 2}).Delete(t.Context()), 200)
}

func TestListingHasOurNumbers(t *testing.T) {
	s := versionedServer()
	c := client(t, s)
	first := mustCreate(t, object(c, "x"))
	second := mustCreate(t, object(c, "x"))
	if _, err := object(c, "x").Update(t.Context(), set("a", "b")); err != nil {
		t.Fatal(err)
	}
	got := map[int64]int64{}
	for it := c.Bucket("b").Objects(t.Context(), &storage.Query{Versions: true}); ; {
		a, err := it.Next()
		if err == iterator.Done {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[a.Generation] = a.Metageneration
	}
	if len(got) != 2 || got[first.Generation] != 1 || got[second.Generation] != 2 {
		t.Errorf("%v", got)
	}
}

func TestGenerationsAreUniqueAndDoNotOnlyIncrease(t *testing.T) {
	s := gcstest.New("b")
	seen := map[int64]bool{}
	var last, up, down int64
	for range 1000 {
		g := s.Put("b", "x", gcstest.Object{}).Generation
		if seen[g] || g <= 0 {
			t.Fatalf("generation %d", g)
		}
		seen[g] = true
		if g > last {
			up++
		} else {
			down++
		}
		last = g
	}
	if up < 100 || down < 100 {
		t.Errorf("%d went up, %d down", up, down)
	}
}

// In a bubble time stands still between sleeps.
func TestGenerationsAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := strictInProcess(t)
		if a, b := g.create("x"), g.create("x"); a.Generation == b.Generation {
			t.Errorf("the same generation %d twice", a.Generation)
		}
		stock := stockMemory(t)
		if a, b := stock.create("x"), stock.create("y"); a.Generation != b.Generation {
			t.Error("stock fakestorage no longer takes its generations from the clock alone")
		}
	})
}

func TestUpdatedMovesAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := object(client(t, gcstest.New("b")), "x")
		last := mustCreate(t, o).Updated
		for range 3 {
			a, err := o.Update(t.Context(), set("a", "b"))
			if err != nil {
				t.Fatal(err)
			}
			if !a.Updated.After(last) {
				t.Errorf("updated %v after %v", a.Updated, last)
			}
			last = a.Updated
		}
		if d := time.Until(last); d > time.Millisecond {
			t.Errorf("%v ahead of the clock", d)
		}
	})
}

// A bucket that was made through the API is like another.
func TestBucketsThroughTheAPI(t *testing.T) {
	s := gcstest.New()
	c := client(t, s)
	b := c.Bucket("bb")
	if err := b.Create(t.Context(), "project", &storage.BucketAttrs{VersioningEnabled: true}); err != nil {
		t.Fatal(err)
	}
	if a, err := b.Attrs(t.Context()); err != nil || !a.VersioningEnabled {
		t.Errorf("%+v, %v", a, err)
	}
	o := b.Object("x")
	mustCreate(t, o)
	if err := o.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Noncurrent("bb", "x")); n != 1 {
		t.Errorf("%d noncurrent versions", n)
	}
	if err := b.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Noncurrent("bb", "x")); n != 0 {
		t.Errorf("%d versions left of a deleted bucket", n)
	}
	if _, err := b.Attrs(t.Context()); err == nil {
		t.Error("the bucket is still there")
	}
}

func TestCreateBucketChangesAnExistingOne(t *testing.T) {
	s := gcstest.New("b")
	first := s.Put("b", "x", gcstest.Object{})
	s.CreateBucket("b", gcstest.Versioned())
	s.Put("b", "x", gcstest.Object{})
	if old := s.Noncurrent("b", "x"); len(old) != 1 || old[0].Generation != first.Generation {
		t.Errorf("%+v", old)
	}
	s.CreateBucket("b")
	s.Put("b", "x", gcstest.Object{})
	if old := s.Noncurrent("b", "x"); len(old) != 1 {
		t.Errorf("%+v", old)
	}
}
