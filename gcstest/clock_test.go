package gcstest_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

func TestSetClock(t *testing.T) {
	s := gcstest.New("b")
	now := time.Date(2030, 1, 2, 3, 4, 5, 123456789, time.FixedZone("elsewhere", 3600))
	s.SetClock(func() time.Time { return now })
	o := object(client(t, s), "x")

	a := mustCreate(t, o)
	if want := now.Truncate(time.Microsecond); !a.Created.Equal(want) || !a.Updated.Equal(want) {
		t.Errorf("created %v, updated %v, want %v", a.Created, a.Updated, want)
	}
	r := send(t, s.Transport(), "GET", objects+"x", "")
	if got := r.header.Get("Date"); got != "Wed, 02 Jan 2030 02:04:05 GMT" {
		t.Errorf("Date %q", got)
	}
	for _, name := range []string{"timeCreated", "updated"} {
		if !regexp.MustCompile(`"` + name + `":"2030-01-02T02:04:05.123456Z"`).MatchString(r.body) {
			t.Errorf("%s without microseconds in %s", name, r.body)
		}
	}

	// The clock may be set back, too.
	for _, d := range []time.Duration{time.Hour, -2 * time.Hour} {
		now = now.Add(d)
		a, err := o.Update(t.Context(), set("a", "b"))
		if err != nil || !a.Updated.Equal(now.Truncate(time.Microsecond)) {
			t.Errorf("updated %v, want %v (%v)", a.Updated, now, err)
		}
	}
	r = send(t, s.Transport(), "GET", objects+"x?alt=media", "")
	if got := r.header.Get("Last-Modified"); got != now.UTC().Format(http.TimeFormat) {
		t.Errorf("Last-Modified %q", got)
	}
	if got := r.header.Get("X-Goog-Metageneration"); got != "3" {
		t.Errorf("X-Goog-Metageneration %q", got)
	}

	s.SetClock(nil)
	if d := time.Since(mustCreate(t, o).Created).Abs(); d > time.Minute {
		t.Errorf("with the default clock, %v off", d)
	}
}
