package gcstest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/gcslock/gcslock/gcstest"
)

func wantReason(t *testing.T, what string, err error, code int, reason string) {
	t.Helper()
	var api *googleapi.Error
	if !errors.As(err, &api) || api.Code != code || len(api.Errors) != 1 || api.Errors[0].Reason != reason {
		t.Errorf("%s: %v, want %d %s", what, err, code, reason)
	}
}

func TestRetention(t *testing.T) {
	s := gcstest.New()
	s.CreateBucket("b", gcstest.Retention(time.Hour))
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s.SetClock(func() time.Time { return now })
	o := object(client(t, s), "x")
	a := mustCreate(t, o)
	if want := now.Add(time.Hour); !a.RetentionExpirationTime.Equal(want) {
		t.Errorf("retained until %v, want %v", a.RetentionExpirationTime, want)
	}
	bucket, err := client(t, s).Bucket("b").Attrs(t.Context())
	if err != nil || bucket.RetentionPolicy == nil || bucket.RetentionPolicy.RetentionPeriod != time.Hour {
		t.Errorf("the bucket is %+v, error %v", bucket, err)
	}

	wantReason(t, "delete", o.Delete(t.Context()), 403, "retentionPolicyNotMet")
	wantReason(t, "delete of the generation", o.Generation(a.Generation).Delete(t.Context()), 403, "retentionPolicyNotMet")
	_, err = create(t.Context(), o, "")
	wantReason(t, "overwrite", err, 403, "retentionPolicyNotMet")
	if _, err := o.Update(t.Context(), set("a", "b")); err != nil {
		t.Errorf("update: %v", err)
	}
	if _, ok := s.Object("b", "x"); !ok {
		t.Fatal("the object has gone")
	}

	now = now.Add(time.Hour)
	if err := o.Delete(t.Context()); err != nil {
		t.Errorf("after the retention: %v", err)
	}
}

func TestHolds(t *testing.T) {
	s := gcstest.New("b")
	o := object(client(t, s), "x")
	mustCreate(t, o)
	patch := func(body string) {
		if r := send(t, s.Transport(), "PATCH", objects+"x", body); r.status != 200 {
			t.Fatalf("%s: %+v", body, r)
		}
	}
	for _, name := range []string{"temporaryHold", "eventBasedHold"} {
		patch(`{"` + name + `":true}`)
		wantReason(t, name+": delete", o.Delete(t.Context()), 403, "objectUnderActiveHold")
		_, err := create(t.Context(), o, "")
		wantReason(t, name+": overwrite", err, 403, "objectUnderActiveHold")
		if a, err := o.Attrs(t.Context()); err != nil || a.TemporaryHold == a.EventBasedHold {
			t.Errorf("%+v, %v", a, err)
		}
		patch(`{"` + name + `":false}`)
	}
	if err := o.Delete(t.Context()); err != nil {
		t.Errorf("without a hold: %v", err)
	}

	w := o.NewWriter(t.Context())
	w.ChunkSize, w.TemporaryHold = 0, true
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wantReason(t, "created with a hold", o.Delete(t.Context()), 403, "objectUnderActiveHold")
}

func TestLimitRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gcstest.New("b")
		s.LimitRate(time.Second)
		c := client(t, s)
		o := object(c, "x")
		mustCreate(t, o)
		update := func() error { return attrsErr(o.Update(t.Context(), set("a", "b"))) }

		wantReason(t, "update", update(), 429, "rateLimitExceeded")
		wantReason(t, "delete", o.Delete(t.Context()), 429, "rateLimitExceeded")
		wantReason(t, "create", attrsErr(create(t.Context(), o, "")), 429, "rateLimitExceeded")
		if _, err := o.Attrs(t.Context()); err != nil {
			t.Errorf("reads have no limit: %v", err)
		}
		mustCreate(t, object(c, "another"))

		// What is refused is not counted.
		time.Sleep(time.Second)
		wantStatus(t, "after a second: update", update(), 200)
		time.Sleep(time.Second)
		wantStatus(t, "after a second: delete", o.Delete(t.Context()), 200)
		wantReason(t, "create at once", attrsErr(create(t.Context(), o, "")), 429, "rateLimitExceeded")
		time.Sleep(time.Second)
		mustCreate(t, o)

		s.LimitRate(0)
		wantStatus(t, "without a limit", update(), 200)
	})
}
