package gcstest_test

import (
	"testing"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
)

func TestRequests(t *testing.T) {
	s := gcstest.New("b")
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s.SetClock(func() time.Time { return now })
	c := client(t, s)
	o := object(c, "dir/x")
	a := mustCreate(t, o.If(storage.Conditions{DoesNotExist: true}))
	version := storage.Conditions{GenerationMatch: a.Generation, MetagenerationMatch: 1}
	if _, err := o.If(version).Update(t.Context(), set("a", "b")); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, "delete", o.Generation(a.Generation).If(version).Delete(t.Context()), 412)
	if _, err := o.NewReader(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bucket("b").Attrs(t.Context()); err != nil {
		t.Fatal(err)
	}

	is := func(p *int64, want int64) bool { return p != nil && *p == want }
	r := s.Requests()
	if len(r) != 5 {
		t.Fatalf("%d requests", len(r))
	}
	if r[0].Op != gcstest.Create || r[0].Status != 200 || !is(r[0].IfGenerationMatch, 0) || r[0].IfMetagenerationMatch != nil {
		t.Errorf("create: %+v", r[0])
	}
	if r[1].Op != gcstest.Update || r[1].Status != 200 || r[1].Generation != 0 ||
		!is(r[1].IfGenerationMatch, a.Generation) || !is(r[1].IfMetagenerationMatch, 1) {
		t.Errorf("update: %+v", r[1])
	}
	if r[2].Op != gcstest.Delete || r[2].Status != 412 || !r[2].Applied || r[2].Generation != a.Generation {
		t.Errorf("delete: %+v", r[2])
	}
	if r[3].Op != gcstest.Get || r[4].Op != gcstest.Other || r[4].Object != "" {
		t.Errorf("the rest: %+v", r[3:])
	}
	for _, e := range r[:4] {
		if e.Bucket != "b" || e.Object != "dir/x" || e.Lost || !e.Time.Equal(now) || len(e.Header) == 0 {
			t.Errorf("%+v", e)
		}
	}
	if len(r[0].Body) == 0 || r[0].Method != "POST" || r[0].URL == "" {
		t.Errorf("create: %+v", r[0])
	}

	s.ResetRequests()
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests after a reset", n)
	}
}

func TestRequestThatHangsIsLogged(t *testing.T) {
	s := gcstest.New("b")
	b := gcstest.NewBarrier()
	s.Inject(gcstest.Fault{Do: gcstest.Hold(b)})
	o := object(client(t, s), "x")
	done := make(chan error)
	go func() { _, err := o.Attrs(t.Context()); done <- err }()
	if err := b.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if r := s.Requests(); len(r) != 1 || r[0].Status != 0 || r[0].Applied || r[0].Lost {
		t.Errorf("%+v", r)
	}
	b.Release()
	wantStatus(t, "read", <-done, 404)
	if r := s.Requests(); r[0].Status != 404 {
		t.Errorf("%+v", r)
	}
}
