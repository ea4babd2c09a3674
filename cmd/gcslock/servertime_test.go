package main

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestServerTime: each reply bounds the offset, together they narrow it down,
// and a clock that was set starts anew.
func TestServerTime(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	var server serverTime
	if _, _, known := server.offset(); known {
		t.Error("known before any reply")
	}
	for _, tt := range []struct {
		name                string
		date, sent, arrived time.Time
		offset, within      time.Duration
	}{
		// The server's clock is 4.6 s ahead in the first three.
		{"one reply", at(5 * time.Second), at(700 * time.Millisecond), at(900 * time.Millisecond), 4700 * time.Millisecond, 600 * time.Millisecond},
		{"narrows", at(6 * time.Second), at(1390 * time.Millisecond), at(1410 * time.Millisecond), 4945 * time.Millisecond, 355 * time.Millisecond},
		{"a slow reply adds nothing", at(7 * time.Second), at(2 * time.Second), at(9 * time.Second), 4945 * time.Millisecond, 355 * time.Millisecond},
		{"a clock was set", at(time.Hour), at(0), at(0), time.Hour + 500*time.Millisecond, 500 * time.Millisecond},
	} {
		server.note(tt.date, tt.sent, tt.arrived)
		if offset, within, known := server.offset(); offset != tt.offset || within != tt.within || !known {
			t.Errorf("%s: %v within %v, known %v; want %v within %v", tt.name, offset, within, known, tt.offset, tt.within)
		}
	}
}

// TestDateReader takes the Date of replies, of failures too, and of nothing else.
func TestDateReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server serverTime
		for _, tt := range []struct {
			date  string
			known bool
		}{{"", false}, {"soon", false}, {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), true}} {
			reader := dateReader{roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Header: http.Header{"Date": {tt.date}}, Body: http.NoBody}, nil
			}), &server}
			response, err := reader.RoundTrip(new(http.Request))
			if err != nil || response.StatusCode != 503 {
				t.Errorf("reply %v, %v", response, err)
			}
			if _, _, known := server.offset(); known != tt.known {
				t.Errorf("Date %q: known is %v", tt.date, known)
			}
		}
		if want := time.Now().Add(time.Hour + 500*time.Millisecond); !server.now().Equal(want) {
			t.Errorf("the server's time is %v, want %v", server.now(), want)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
