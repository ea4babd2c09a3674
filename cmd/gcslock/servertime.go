package main

import (
	"net/http"
	"sync"
	"time"
)

// A serverTime knows how far the server's clock is ahead of the local one, as
// the Date headers of replies tell. A Date is in whole seconds, and was set
// between the request's start and the reply's arrival: each reply bounds the
// offset from both sides, and more replies narrow it down. It is safe for
// concurrent use.
type serverTime struct {
	mu          sync.Mutex // guards all below
	known       bool
	least, most time.Duration
}

// note takes the Date of a reply.
func (t *serverTime) note(date, sent, arrived time.Time) {
	least, most := date.Sub(arrived), date.Add(time.Second).Sub(sent)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known && least <= t.most && most >= t.least {
		least, most = max(least, t.least), min(most, t.most)
	}
	// Else one of the clocks was set in between, and the last reply is right.
	t.known, t.least, t.most = true, least, most
}

// offset is what to add to the local time for the server's, and by how much
// that may be wrong. It is not known before the first reply.
func (t *serverTime) offset() (offset, within time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	within = (t.most - t.least) / 2
	return t.least + within, within, t.known
}

// now is the server's time, and the local time where that is not known.
func (t *serverTime) now() time.Time {
	offset, _, _ := t.offset()
	return time.Now().Add(offset)
}

// A dateReader is a transport that shows the serverTime every reply.
type dateReader struct {
	http.RoundTripper
	server *serverTime
}

func (r dateReader) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := time.Now()
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		r.server.note(date, sent, time.Now())
	}
	return response, nil
}
