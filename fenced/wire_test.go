package fenced

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A wire carries the requests of one client of a schedule, with all that can happen
// to them, and has its process paused around them.
type wire struct {
	schedule *schedule
	id       uint64

	mu    sync.Mutex // guards until
	until time.Time  // the process is paused so long
}

func newWire(s *schedule, id uint64) *wire { return &wire{schedule: s, id: id} }

// roll is from 0 to below 1, and follows from the seed, the client, the instant and
// the purpose alone: goroutines that wake at one instant run in any order.
func (w *wire) roll(purpose string) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.schedule.seed, w.id, time.Since(w.schedule.began), purpose)
	x := h.Sum64()
	// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

func (w *wire) below(purpose string, d time.Duration) time.Duration {
	return time.Duration(w.roll(purpose) * float64(d))
}

// pause stops the process now and then, and waits until it goes on. No context ends
// that: a process that is stopped looks at none.
func (w *wire) pause(purpose string) {
	w.mu.Lock()
	if p := w.roll(purpose); p < 0.06 && time.Now().After(w.until) {
		w.until = time.Now().Add(w.below(purpose+" long", longPause))
	}
	left := time.Until(w.until)
	w.mu.Unlock()
	time.Sleep(max(0, left))
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	w.pause("pause before " + r.Method)
	response, err := w.carry(r, body)
	w.pause("pause after " + r.Method)
	return response, err
}

// carry is the network's part.
func (w *wire) carry(r *http.Request, body []byte) (*http.Response, error) {
	time.Sleep(time.Millisecond + w.below("way "+r.Method, 40*time.Millisecond))
	fate := w.roll("fate " + r.Method)
	if fate > 0.2 {
		return w.schedule.deliver(r, body)
	}
	switch int(fate * 40) {
	case 0:
		return say(r, http.StatusServiceUnavailable), nil
	case 1:
		return say(r, http.StatusTooManyRequests), nil
	case 2: // lost
	case 3:
		_, _ = w.schedule.deliver(r, body) // and its reply is lost
	case 4:
		_, _ = w.schedule.deliver(r, body)
		return say(r, http.StatusServiceUnavailable), nil
	case 5:
		return w.twice(r, body)
	default: // comes when its sender has given up
		time.AfterFunc(w.below("late "+r.Method, 5*time.Second), func() { _, _ = w.schedule.deliver(r, body) })
	}
	return nil, io.ErrUnexpectedEOF
}

// twice is a request that somebody on the way sends again. Of a write the first reply
// comes back: after the second one, a 412, and a successor's write nothing tells
// that it was done, see docs/fencing.md.
func (w *wire) twice(r *http.Request, body []byte) (*http.Response, error) {
	first, err := w.schedule.deliver(r, body)
	second, again := w.schedule.deliver(r, body)
	if r.Method == http.MethodPost {
		return first, err
	}
	return second, again
}

var fenceInBody = regexp.MustCompile(`"fence":"(\d+)"`)

// deliver has the server do what is asked, whether its sender still waits or not, and
// checks what must hold at that instant.
func (s *schedule) deliver(r *http.Request, body []byte) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	held, _ := s.server.Object(testBucket, testLock)
	response, err := s.server.Transport().RoundTrip(r)
	if err != nil || r.Method == http.MethodGet {
		return response, err
	}
	applied := response.StatusCode == http.StatusOK
	match := fenceInBody.FindSubmatch(body)
	switch {
	case match == nil: // the lock's
		if o, ok := s.server.Object(testBucket, testLock); ok && s.order[o.Generation] == 0 {
			s.order[o.Generation] = len(s.order) + 1
		}
	case applied || r.Method == http.MethodPost:
		token, _ := strconv.ParseInt(string(match[1]), 10, 64)
		s.arrived(r.Method, token, held.Generation, applied, strings.Contains(string(body), keyEmpty))
	}
	return response, nil
}

// arrived checks a claim or a write of the state. Needs mu.
func (s *schedule) arrived(method string, token, holder int64, applied, empty bool) {
	turn := s.order[token]
	if turn == 0 {
		s.violate("the fence %d is no token", token)
	}
	stale := holder != token
	switch {
	case method == http.MethodPatch || empty:
		if stale && applied {
			s.LateClaims++
		}
		s.claimed = max(s.claimed, turn)
	case stale && !applied:
		s.Stale++
	case applied && turn < s.claimed:
		s.violate("a write of holder %d was applied after the claim of holder %d", turn, s.claimed)
	}
}

// say is a reply that does not come from the server.
func say(r *http.Request, status int) *http.Response {
	text := fmt.Sprintf(`{"error":{"code":%d,"message":"%s"}}`, status, http.StatusText(status))
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}
}

// newValueReader is a reader that can't be rewound.
func newValueReader(value string) io.Reader { return io.MultiReader(strings.NewReader(value)) }
