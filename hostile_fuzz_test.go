package gcslock

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A script is what a hostile server answers, three bytes a reply, over and over:
// which status, which body, and how it gets here.
type script struct {
	plan           []byte
	date           string
	text, location string // of the fuzzer's own
	next           int
}

var scriptStatus = []int{
	200, 201, 202, 204, 206, 299, 100, 0, 999, 301, 302, 303, 304, 307, 308, 400,
	401, 403, 404, 404, 405, 408, 409, 410, 412, 412, 412, 416, 429, 500, 502, 503,
}

// bodies are what a reply may say. nonce is that of our last create.
func (s *script) bodies(v version, nonce string) []string {
	now := time.Now()
	lock := func(owner, nonce, ttl string, expires time.Time) map[string]string {
		return map[string]string{"owner": owner, "nonce": nonce, "ttl": ttl, "expires-at": timestamp(expires)}
	}
	dead := now.Add(-time.Hour)
	return []string{
		s.text,
		resource(v, now, lock("live", "n", "1m0s", now.Add(time.Minute))),
		resource(v, dead, lock("dead", "n", "1m0s", dead.Add(time.Minute))),
		resource(v, dead, map[string]string{"Info": "a lock of Terraform's"}),
		resource(v, now, lock("", nonce, "1m0s", now.Add(time.Minute))), // ours
		resource(v, dead, map[string]string{"owner": "older", "expires-at": "9999-12-31T23:59:59Z"}),
		resource(version{v.generation, 0}, dead, lock("dead", "n", "3s", dead)),
		resource(version{-v.generation, 1}, dead, lock("dead", "n", "3s", dead)),
		`{"metageneration":"1","updated":"2000-01-01T00:00:00Z","metadata":{"owner":"dead","ttl":"3s"}}`,
		`{"generation":7,"metageneration":[1],"updated":{},"metadata":"owner"}`,
		`{"generation":"99999999999999999999","metageneration":"1e3"}`,
		`{}`, `null`, ``,
		`<!DOCTYPE html><title>Sign in</title>` + strings.Repeat(" ", 1<<10),
		`{"error":{"code":404,"message":"` + strings.Repeat(`\u001b[2J`, 100) + `","errors":[{"reason":"rateLimitExceeded"}]}}`,
	}
}

func (s *script) answer(r *http.Request, nonce string) *http.Response {
	how := [3]byte{}
	if len(s.plan) > 0 {
		for i := range how {
			how[i] = s.plan[(s.next+i)%len(s.plan)]
		}
		s.next = (s.next + len(how)) % len(s.plan)
	}
	delay := []time.Duration{0, time.Second, 4 * time.Second, 20 * time.Second}[how[2]&3]
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return nil
	}
	bodies := s.bodies(version{7 + int64(how[2]>>6), 1}, nonce)
	text := bodies[int(how[1])%len(bodies)]
	var end error
	switch how[2] >> 2 & 3 {
	case 1:
		text = text[:len(text)/2]
	case 2:
		text, end = text[:len(text)/2], io.ErrUnexpectedEOF
	}
	header := []string{"Date", s.date}
	switch how[2] >> 4 & 3 {
	case 1:
		header = append(header, "Location", r.URL.String())
	case 2:
		header = append(header, "Location", s.location)
	case 3:
		header = append(header, "Content-Length", "9223372036854775807")
	}
	return respond(r, scriptStatus[int(how[0])%len(scriptStatus)], newReplyBody(text, end), header...)
}

// FuzzHostileServer: whatever a server answers, every call ends in its time,
// after a bounded number of requests; nothing is deleted that its replies do not
// show to be stale or ours; and a lease is backed by a success that carried its
// generation.
func FuzzHostileServer(f *testing.F) {
	const long = "Mon, 30 Nov 2026 10:00:00 GMT"
	plans := [][]byte{nil}
	for body := range byte(16) {
		plans = append(plans,
			[]byte{0, body, 0},                                            // success, whatever was asked
			[]byte{24, 0, 0, 0, body, 0},                                  // 412 to the create, then this
			[]byte{24, 0, 0, 0, body, 0, 3, 13, 0},                        // and a delete that is done
			[]byte{24, 0, 0, 0, body, 0, 24, 0, 0},                        // and one that is not
			[]byte{24, 0, 0, 0, body, 0, 18, 0, 0},                        // or finds nothing
			[]byte{31, body, 0x48, 0, body, 0x83},                         // cut off, slow
			[]byte{24, 0, 1, 0, body, 4, 0, body, 8, 0, body, 2},          // truncated
			[]byte{10, body, 0x10, 13, body, 0x10, 14, body, 0x10},        // redirects to itself
			[]byte{11, body, 0x20, 0, body, 0, 9, body, 0x30, 2, body, 0}, // and elsewhere
		)
	}
	for i, plan := range plans {
		f.Add(byte(0), plan, []string{"", long}[i%2], `{"generation":"7","metageneration":"1"}`, "://")
		f.Add(byte(1+i%3), plan, []string{long, "", "Fri, 31 Dec 9999 23:59:59 GMT"}[i%3], `[`, "http://other.invalid/")
	}
	f.Fuzz(func(t *testing.T, verb byte, plan []byte, date, text, location string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{plan: plan, date: date, text: text, location: location}
			h := &hostileServer{T: t, answer: s.answer}
			useHostile(t, h, verb)
		})
	})
}

// useHostile calls the library on the server.
func useHostile(t *testing.T, h *hostileServer, verb byte) {
	t.Helper()
	// A refresher beside the calls would make several histories of an input: a lease may
	// be due for a refresh when it is handed over.
	lock, err := New(clientOver(t, h).Bucket(testBucket), testObject, WithMaxWait(90*time.Second), WithManualRefresh())
	if err != nil {
		t.Fatal(err)
	}
	lock.random = func(n time.Duration) time.Duration { return n / 2 } // one history an input
	began := time.Now()
	switch verb % 4 {
	case 0:
		h.most = 30
		lease, err := lock.TryAcquire(t.Context())
		took(t, "a try", began, 0, 3*time.Minute)
		h.checkLease(lease, err)
	case 1:
		h.most = 2000
		lease, err := lock.Acquire(t.Context())
		took(t, "a wait of 90 s", began, 0, 90*time.Second+cleanupLimit)
		h.checkLease(lease, err)
	case 2:
		h.most = 3
		info, err := lock.Inspect(t.Context())
		took(t, "a look", began, 0, 33*time.Second)
		if (info == nil) == (err == nil) || info != nil && info.Generation <= 0 {
			t.Errorf("a look shows %+v and %v", info, err)
		}
	case 3:
		h.most, h.breaking = 600, true
		if err := lock.Break(t.Context(), 7); err == nil && len(h.seen) == 0 {
			t.Error("broke a lock that no reply has shown")
		}
		took(t, "a break", began, 0, 15*time.Second)
	}
}

// checkLease asserts what a lease stands on, refreshes it and releases it.
func (h *hostileServer) checkLease(lease *Lease, err error) {
	h.Helper()
	if err != nil {
		if lease != nil || errors.Is(err, ErrLockAbandoned) || errors.Is(err, ErrNotHeld) {
			h.Errorf("lease %v, error %v", lease, err)
		}
		return
	}
	if v := lease.lastVersion(); !h.made(v) || v.generation != lease.Token() || lease.Token() <= 0 {
		h.Errorf("a lease with token %d, and no reply that carries it", lease.Token())
	}
	if left := time.Until(lease.Expires()); left <= 20*time.Second || left > 54*time.Second {
		h.Errorf("a lease with %v left", left)
	}
	h.most = h.requests + 1000
	began := time.Now()
	_ = lease.Refresh(h.Context())
	took(h.T, "a refresh", began, 0, 20*time.Second)
	began = time.Now()
	_ = lease.Release(h.Context())
	took(h.T, "a release", began, 0, 15*time.Second)
}
