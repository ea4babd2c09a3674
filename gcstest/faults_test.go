package gcstest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
)

func metageneration(s *gcstest.Server) int64 {
	o, _ := s.Object("b", "x")
	return o.Metageneration
}

func TestFailStatus(t *testing.T) {
	s := gcstest.New("b")
	o := object(client(t, s), "x")
	mustCreate(t, o)
	in := s.Inject(gcstest.Fault{Op: gcstest.Update, Times: 2, Do: gcstest.FailStatus(503)})
	for _, want := range []int{503, 503, 200} {
		wantStatus(t, "update", attrsErr(o.Update(t.Context(), set("a", "b"))), want)
	}
	if in.Hits() != 2 || metageneration(s) != 2 {
		t.Errorf("%d hits, metageneration %d", in.Hits(), metageneration(s))
	}
	r := s.Requests()
	if r[1].Status != 503 || r[1].Applied || r[1].Lost || r[3].Status != 200 || !r[3].Applied {
		t.Errorf("%+v", r)
	}
}

func TestFailStatusHasReasonAndDate(t *testing.T) {
	s := gcstest.New("b")
	for code, reason := range map[int]string{
		400: "invalid", 401: "authError", 403: "forbidden", 404: "notFound", 408: "uploadBrokenConnection",
		409: "conflict", 412: "conditionNotMet", 429: "rateLimitExceeded", 500: "backendError", 503: "backendError",
	} {
		in := s.Inject(gcstest.Fault{Do: gcstest.FailStatus(code)})
		wantReason(t, "read", attrsErr(object(client(t, s), "x").Attrs(t.Context())), code, reason)
		if r := send(t, s.Transport(), "GET", objects+"x", ""); r.header.Get("Date") == "" {
			t.Errorf("%d has no Date", code)
		}
		in.Remove()
	}
}

func TestForbid(t *testing.T) {
	s := gcstest.New("b")
	o := object(client(t, s), "x")
	mustCreate(t, o)
	s.Inject(gcstest.Fault{Op: gcstest.Delete, Do: gcstest.Forbid("storage.objects.delete")})
	wantReason(t, "delete", o.Delete(t.Context()), 403, "forbidden")
	if _, ok := s.Object("b", "x"); !ok {
		t.Error("deleted all the same")
	}
	wantStatus(t, "read", attrsErr(o.Attrs(t.Context())), 200)
}

func TestLostRequestsAndReplies(t *testing.T) {
	for name, c := range map[string]struct {
		do      gcstest.Action
		applied bool
		status  int
	}{
		"request":         {gcstest.DropRequest(), false, 0},
		"reply":           {gcstest.LoseReply(), true, 200},
		"half of a reply": {gcstest.TruncateReply(), true, 200},
	} {
		t.Run(name, func(t *testing.T) {
			s := gcstest.New("b")
			o := object(client(t, s), "x")
			mustCreate(t, o)
			s.Inject(gcstest.Fault{Op: gcstest.Update, Times: 1, Do: c.do})
			_, err := o.Update(t.Context(), set("a", "b"))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v", err)
			}
			if applied := metageneration(s) == 2; applied != c.applied {
				t.Errorf("applied: %t", applied)
			}
			r := s.Requests()[1]
			if !r.Lost || r.Applied != c.applied || r.Status != c.status {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestGarbleReply(t *testing.T) {
	s := gcstest.New("b")
	o := object(client(t, s), "x")
	s.Inject(gcstest.Fault{Op: gcstest.Create, Do: gcstest.GarbleReply()})
	if _, err := create(t.Context(), o, ""); err == nil || status(err) != 0 {
		t.Errorf("%v", err)
	}
	if _, ok := s.Object("b", "x"); !ok {
		t.Error("not applied")
	}
}

func TestWithhold(t *testing.T) {
	s := gcstest.New("b")
	o := object(client(t, s), "x").If(storage.Conditions{DoesNotExist: true})
	in := s.Inject(gcstest.Fault{Op: gcstest.Create, Times: 2, Do: gcstest.Withhold()})
	for range 2 {
		if _, err := create(t.Context(), o, ""); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
	}
	if _, ok := s.Object("b", "x"); ok {
		t.Error("applied at once")
	}
	if got := in.Deliver(); len(got) != 2 || got[0] != 200 || got[1] != 412 {
		t.Errorf("delivered late: %v", got)
	}
	if _, ok := s.Object("b", "x"); !ok {
		t.Error("not applied")
	}
	if got := in.Deliver(); got != nil {
		t.Errorf("delivered again: %v", got)
	}
	if r := s.Requests()[0]; !r.Applied || !r.Lost || r.Status != 200 {
		t.Errorf("%+v", r)
	}
}

func TestDelay(t *testing.T) {
	for name, c := range map[string]struct {
		do      func(time.Duration) gcstest.Action
		applied bool
	}{
		"before": {gcstest.Delay, false},
		"after":  {gcstest.DelayReply, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := gcstest.New("b")
				o := object(client(t, s), "x")
				mustCreate(t, o)
				in := s.Inject(gcstest.Fault{Op: gcstest.Update, Do: c.do(time.Hour)})
				start := time.Now()
				if _, err := o.Update(t.Context(), set("a", "b")); err != nil || time.Since(start) != time.Hour {
					t.Errorf("%v after %v", err, time.Since(start))
				}

				// A context that ends first ends the request. What the server
				// does is not undone.
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start = time.Now()
				if _, err := o.Update(ctx, set("a", "b")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				if applied := metageneration(s) == 3; applied != c.applied {
					t.Errorf("applied: %t", applied)
				}

				go func() { time.Sleep(time.Second); in.Remove() }()
				start = time.Now()
				if _, err := o.Update(t.Context(), set("a", "b")); err != nil || time.Since(start) != time.Second {
					t.Errorf("removed: %v after %v", err, time.Since(start))
				}
			})
		})
	}
}

func TestHang(t *testing.T) {
	for name, c := range map[string]struct {
		do      gcstest.Action
		applied bool
	}{
		"before": {gcstest.Hang(), false},
		"after":  {gcstest.HangReply(), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := gcstest.New("b")
				o := object(client(t, s), "x")
				mustCreate(t, o)
				in := s.Inject(gcstest.Fault{Op: gcstest.Update, Do: c.do})
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				start := time.Now()
				if _, err := o.Update(ctx, set("a", "b")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 24*time.Hour {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				if applied := metageneration(s) == 2; applied != c.applied {
					t.Errorf("applied: %t", applied)
				}
				if r := s.Requests()[1]; !r.Lost || r.Applied != c.applied {
					t.Errorf("%+v", r)
				}

				// Others are served meanwhile, and removal lets the request go on.
				var err error
				var wg sync.WaitGroup
				wg.Go(func() { _, err = o.Update(t.Context(), set("a", "b")) })
				synctest.Wait()
				if _, err := o.Attrs(t.Context()); err != nil {
					t.Error(err)
				}
				in.Remove()
				in.Remove()
				wg.Wait()
				if err != nil {
					t.Errorf("removed: %v", err)
				}
				if _, err := o.Update(t.Context(), set("a", "b")); err != nil {
					t.Errorf("after the removal: %v", err)
				}
			})
		})
	}
}

// The update is on its way when the object is deleted and made again.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gcstest.New("b")
		o := object(client(t, s), "x")
		a := mustCreate(t, o)
		b := gcstest.NewBarrier()
		s.Inject(gcstest.Fault{Op: gcstest.Update, Do: gcstest.Hold(b)})
		var err error
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err = o.If(storage.Conditions{GenerationMatch: a.Generation}).Update(t.Context(), set("a", "b"))
		})
		if err := b.Arrived(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		s.Delete("b", "x")
		s.Put("b", "x", gcstest.Object{})
		b.Release()
		b.Release()
		wg.Wait()
		wantStatus(t, "update", err, 412)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.Arrived(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a request that doesn't come: %v", err)
		}
		wantStatus(t, "update through the open barrier", attrsErr(o.Update(t.Context(), set("a", "b"))), 200)
	})
}

func TestHoldReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gcstest.New("b")
		o := object(client(t, s), "x")
		b := gcstest.NewBarrier()
		s.Inject(gcstest.Fault{Op: gcstest.Create, Do: gcstest.HoldReply(b)})
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = create(ctx, o, "") })
		if err := b.Arrived(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Object("b", "x"); !ok {
			t.Error("not applied")
		}
		cancel()
		wg.Wait()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestFaultChooses(t *testing.T) {
	s := gcstest.New("b", "c")
	mine, theirs := clientAs(t, s, "mine"), clientAs(t, s, "theirs")
	for name, c := range map[string]struct {
		fault gcstest.Fault
		met   bool
	}{
		"any":              {gcstest.Fault{}, true},
		"operation":        {gcstest.Fault{Op: gcstest.Get}, true},
		"another":          {gcstest.Fault{Op: gcstest.Delete}, false},
		"object":           {gcstest.Fault{Bucket: "b", Object: "x"}, true},
		"another object":   {gcstest.Fault{Object: "y"}, false},
		"another bucket":   {gcstest.Fault{Bucket: "c"}, false},
		"client":           {gcstest.Fault{Client: "mine"}, true},
		"another client":   {gcstest.Fault{Client: "theirs"}, false},
		"match":            {gcstest.Fault{Match: func(r *http.Request) bool { return r.Method == "GET" }}, true},
		"no match":         {gcstest.Fault{Match: func(r *http.Request) bool { return r.URL.Query().Has("generation") }}, false},
		"later":            {gcstest.Fault{Skip: 1}, false},
		"other operations": {gcstest.Fault{Op: gcstest.Other}, false},
	} {
		c.fault.Do = gcstest.FailStatus(503)
		in := s.Inject(c.fault)
		want := 404
		if c.met {
			want = 503
		}
		wantStatus(t, name, attrsErr(object(mine, "x").Attrs(t.Context())), want)
		if met := in.Hits() == 1; met != c.met {
			t.Errorf("%s: %d hits", name, in.Hits())
		}
		in.Remove()
	}
	s.Inject(gcstest.Fault{Client: "theirs", Do: gcstest.DropRequest()})
	if _, err := object(theirs, "x").Attrs(t.Context()); status(err) != 0 {
		t.Errorf("the client that is cut off: %v", err)
	}
	if r := s.Requests(); r[len(r)-1].Client != "theirs" {
		t.Errorf("client %q", r[len(r)-1].Client)
	}
}

func TestFaultsApplyInOrder(t *testing.T) {
	s := gcstest.New("b")
	o := object(client(t, s), "x")
	s.Inject(gcstest.Fault{Times: 1, Skip: 1, Do: gcstest.FailStatus(500)})
	s.Inject(gcstest.Fault{Times: 2, Do: gcstest.FailStatus(503)})
	for _, want := range []int{503, 500, 503, 404} {
		wantStatus(t, "read", attrsErr(o.Attrs(t.Context())), want)
	}
}

func TestFaultWithoutAction(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("accepted")
		}
	}()
	gcstest.New().Inject(gcstest.Fault{})
}
