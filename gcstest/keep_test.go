package gcstest_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/inside"
)

func keepIn(s *gcstest.Server, file string) error {
	return inside.KeepIn.(func(*gcstest.Server, string) error)(s, file)
}

// TestKept: a server is left as if killed after every change, and the next one
// has to know all of it.
func TestKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "objects")
	used := map[int64]bool{}
	var before *gcstest.Server
	next := func() *gcstest.Server {
		s := gcstest.New()
		s.CreateBucket("b", gcstest.Versioned())
		if err := keepIn(s, file); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			live, there := s.Object("b", "x")
			was, wasThere := before.Object("b", "x")
			if there != wasThere || !reflect.DeepEqual(live, was) {
				t.Errorf("live: %+v, was %+v", live, was)
			}
			if all, were := s.Noncurrent("b", "x"), before.Noncurrent("b", "x"); !reflect.DeepEqual(all, were) {
				t.Errorf("noncurrent: %+v, were %+v", all, were)
			}
		}
		before = s
		return s
	}
	fresh := func(generation int64) {
		if used[generation] {
			t.Errorf("generation %d came twice", generation)
		}
		used[generation] = true
	}

	for range 2 {
		attrs := mustCreate(t, object(client(t, next()), "x"))
		fresh(attrs.Generation)
		live := object(client(t, next()), "x").If(storage.Conditions{GenerationMatch: attrs.Generation, MetagenerationMatch: 1})
		attrs, err := live.Update(t.Context(), set("key", "value"))
		if err != nil || attrs.Metageneration != 2 {
			t.Fatalf("update: %+v, %v", attrs, err)
		}
		if _, ok := next().Edit("b", "x", map[string]string{"more": "value"}); !ok {
			t.Fatal("edit: no object")
		}
		fresh(next().Put("b", "x", gcstest.Object{Content: []byte("put"), ContentType: "text/plain", CacheControl: "no-store"}).Generation)
		if err := object(client(t, next()), "x").Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		fresh(next().Put("b", "x", gcstest.Object{TemporaryHold: true}).Generation)
		if !next().Delete("b", "x") {
			t.Fatal("delete: no object")
		}
	}
	if n := len(next().Noncurrent("b", "x")); n != 6 {
		t.Errorf("%d noncurrent versions, want 6", n)
	}
}

func TestKeptRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "objects")
	s := gcstest.New("b")
	if err := keepIn(s, file); err != nil {
		t.Fatal(err)
	}
	s.Put("b", "x", gcstest.Object{})
	garbled := filepath.Join(dir, "garbled")
	if err := os.WriteFile(garbled, []byte(`{"Objects":[{`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		server     *gcstest.Server
		file, want string
	}{
		{gcstest.New("other"), file, `no bucket "b"`},
		{gcstest.New("b"), garbled, garbled},
		{gcstest.New("b"), dir, dir},
	} {
		if err := keepIn(tt.server, tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.file, err, tt.want)
		}
	}
}
