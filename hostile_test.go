package gcslock

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// always answers every request in the same way.
func always(status int, body string, header ...string) func(*http.Request, string) *http.Response {
	return func(r *http.Request, _ string) *http.Response {
		return respond(r, status, newReplyBody(body, nil), header...)
	}
}

// inHostileWorld runs f in a bubble, with a lock on a server that answers so.
func inHostileWorld(t *testing.T, answer func(*http.Request, string) *http.Response, f func(*testing.T, *hostileServer, *Lock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &hostileServer{T: t, answer: answer, most: 1000}
		lock, err := New(clientOver(t, h).Bucket(testBucket), testObject)
		if err != nil {
			t.Fatal(err)
		}
		f(t, h, lock)
	})
}

// TestUnreadableSuccess: a success that does not tell a version is no success,
// whatever was asked. Found by FuzzHostileServer: {} made a lease without a
// generation, whose deletes went without preconditions, and null ended the
// program.
func TestUnreadableSuccess(t *testing.T) {
	for name, body := range map[string]string{
		"null": `null`, "empty object": `{}`, "nothing": ``, "page": `<html>Sign in</html>`, "list": `[]`, "text": `"7"`,
		"no metageneration": `{"generation":"7"}`, "no generation": `{"metageneration":"1"}`,
		"zero": `{"generation":"0","metageneration":"1"}`, "negative": `{"generation":"-7","metageneration":"1"}`,
		"negative metageneration": `{"generation":"7","metageneration":"-1"}`,
		"too large":               `{"generation":"99999999999999999999","metageneration":"1"}`, "number": `{"generation":7,"metageneration":1}`,
		"wrong types": `{"generation":"7","metageneration":"1","metadata":["owner"]}`, "cut off": `{"generation":"7","metageneration":"1","met`,
	} {
		for _, status := range []int{200, 204} {
			t.Run(name, func(t *testing.T) {
				inHostileWorld(t, always(status, body), func(t *testing.T, h *hostileServer, lock *Lock) {
					for op, r := range map[operation]reply{
						opCreate: lock.create(t.Context(), nil), opRead: lock.read(t.Context()),
					} {
						if r.outcome != unknown || r.err == nil {
							t.Errorf("%d %s to a %s is %v (%v)", status, body, op, r.outcome, r.err)
						}
					}
					if lease, err := lock.TryAcquire(t.Context()); err == nil {
						t.Errorf("a lease with token %d", lease.Token())
					}
					r := lock.update(t.Context(), time.Minute, version{7, 1}, nil)
					if r.outcome != unknown && (name != "no metageneration" || status == 204) {
						t.Errorf("%d %s to an update is %v", status, body, r.outcome)
					}
				})
			})
		}
	}
}

// TestRedirectLoop: net/http follows ten redirects; what is behind none of them
// is an outcome of its own.
func TestRedirectLoop(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		loop := func(r *http.Request, _ string) *http.Response {
			return respond(r, status, newReplyBody("", nil), "Location", r.URL.String())
		}
		inHostileWorld(t, loop, func(t *testing.T, h *hostileServer, lock *Lock) {
			h.breaking = true
			sent := 0
			h.answer = func(r *http.Request, nonce string) *http.Response { sent++; return loop(r, nonce) }
			for op, request := range fourRequests(lock) {
				sent = 0
				if r := request(t.Context()); r.outcome != unknown || sent > 10 {
					t.Errorf("%d for ever: %s is %v after %d requests (%v)", status, op, r.outcome, sent, r.err)
				}
			}
			began := time.Now()
			if _, err := lock.TryAcquire(t.Context()); err == nil || errors.Is(err, ErrLocked) {
				t.Errorf("a try ends with %v", err)
			}
			took(t, "a try", began, 0, time.Minute)
		})
	}
}

// fourRequests are the requests of the protocol, about some version.
func fourRequests(l *Lock) map[operation]func(context.Context) reply {
	v := version{7, 1}
	return map[operation]func(context.Context) reply{
		opCreate: func(ctx context.Context) reply { return l.create(ctx, nil) },
		opRead:   l.read,
		opUpdate: func(ctx context.Context) reply { return l.update(ctx, time.Minute, v, nil) },
		opDelete: func(ctx context.Context) reply { return l.remove(ctx, v) },
	}
}

// An endless body never ends before its request does.
type endless struct {
	ctx  context.Context
	read *int
}

func (e endless) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	p = p[:min(len(p), 4<<10)]
	for i := range p {
		p[i] = 'x'
	}
	*e.read += len(p)
	return len(p), nil
}

// TestEndlessReply: the storage client keeps what it reads of a reply in memory,
// without a limit of its own. The attempt's limit ends it.
func TestEndlessReply(t *testing.T) {
	for _, status := range []int{200, 404, 503} {
		read := 0
		answer := func(r *http.Request, _ string) *http.Response {
			body := struct {
				io.Reader
				io.Closer
			}{io.MultiReader(newReplyBody(`{"updated":"`, nil), endless{r.Context(), &read}), io.NopCloser(nil)}
			return respond(r, status, body)
		}
		inHostileWorld(t, answer, func(t *testing.T, h *hostileServer, lock *Lock) {
			h.breaking = true
			for op, request := range fourRequests(lock) {
				began := time.Now()
				r := request(t.Context())
				took(t, string(op), began, 0, requestLimit+20*time.Millisecond)
				if r.outcome == done && op != opDelete {
					t.Errorf("%s is %v", op, r.outcome)
				}
			}
		})
		if read == 0 {
			t.Errorf("nothing of a %d was read", status)
		}
	}
}

// TestTakeOverWithoutEffect: a stale object stays in the way whatever is done
// about it, as behind a proxy that answers reads from a cache. A try ends, and a
// wait has pauses. Found by FuzzHostileServer: neither did.
func TestTakeOverWithoutEffect(t *testing.T) {
	for _, status := range []int{204, 404, 412} {
		answer := func(r *http.Request, _ string) *http.Response {
			dead := time.Now().Add(-time.Hour)
			switch r.Method {
			case http.MethodPost:
				return respond(r, 412, newReplyBody("", nil), "Date", time.Now().UTC().Format(http.TimeFormat))
			case http.MethodDelete:
				return respond(r, status, newReplyBody("", nil))
			}
			obj := with(liveObject(), keyExpiresAt, timestamp(dead.Add(time.Minute)))
			return respond(r, 200, newReplyBody(resource(version{7, 1}, dead, obj.metadata), nil))
		}
		inHostileWorld(t, answer, func(t *testing.T, h *hostileServer, lock *Lock) {
			_, err := lock.TryAcquire(t.Context())
			isHeld(t, err, "holder")
			if h.requests > 12 {
				t.Errorf("a try sends %d requests when deletes are answered %d", h.requests, status)
			}
			h.requests = 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = lock.Acquire(ctx)
			isContext(t, err, context.DeadlineExceeded)
			if h.requests > 900 { // 6 a pause, of half a second
				t.Errorf("a minute's wait sends %d requests when deletes are answered %d", h.requests, status)
			}
		})
	}
}

// TestOwnObjectInTheWay: what a slow create of ours left is too old to be handed
// out, and can't be deleted. A try ends, and a missing permission ends a wait.
func TestOwnObjectInTheWay(t *testing.T) {
	for _, status := range []int{204, 404, 412, 503, 403} {
		answer := func(r *http.Request, nonce string) *http.Response {
			switch r.Method {
			case http.MethodPost:
				return respond(r, 412, newReplyBody("", nil))
			case http.MethodDelete:
				return respond(r, status, newReplyBody("", nil))
			}
			time.Sleep(9 * time.Second)
			ours := with(liveObject(), keyNonce, nonce)
			return respond(r, 200, newReplyBody(resource(version{7, 1}, time.Now(), ours.metadata), nil))
		}
		inHostileWorld(t, answer, func(t *testing.T, h *hostileServer, _ *Lock) {
			lock, err := New(clientOver(t, h).Bucket(testBucket), testObject, WithTTL(3*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := lock.TryAcquire(t.Context()); err == nil {
				t.Error("a lease that is used up")
			}
			took(t, "a try", began, 0, time.Minute)
			if status == 403 {
				_, err := lock.Acquire(t.Context())
				says(t, err, "storage.objects.delete")
			}
		})
	}
}

// TestReleaseContradicted: the delete is refused for a version that the read
// shows. Found by FuzzHostileServer: the two went on without a pause.
func TestReleaseContradicted(t *testing.T) {
	answer := func(r *http.Request, nonce string) *http.Response {
		if r.Method == http.MethodDelete {
			return respond(r, 412, newReplyBody("", nil))
		}
		ours := with(liveObject(), keyNonce, nonce)
		return respond(r, 200, newReplyBody(resource(version{7, 1}, time.Now(), ours.metadata), nil))
	}
	inHostileWorld(t, answer, func(t *testing.T, h *hostileServer, lock *Lock) {
		lease, err := lock.TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		says(t, lease.Release(t.Context()), "may still be there", "changes again and again")
		took(t, "a release", began, releaseLimit, releaseLimit)
		if h.requests > 320 {
			t.Errorf("a release sends %d requests", h.requests)
		}
	})
}

// TestRedirectedWrite: a redirect turns a POST into a GET, whose reply shows
// another's lock. It is no success of ours.
func TestRedirectedWrite(t *testing.T) {
	for _, status := range []int{301, 302, 303} {
		answer := func(r *http.Request, _ string) *http.Response {
			if r.Method != http.MethodGet {
				return respond(r, status, newReplyBody("", nil), "Location", "http://proxy.invalid/")
			}
			return respond(r, 200, newReplyBody(resource(version{7, 1}, time.Now(), liveObject().metadata), nil))
		}
		inHostileWorld(t, answer, func(t *testing.T, _ *hostileServer, lock *Lock) {
			_, err := lock.TryAcquire(t.Context())
			isHeld(t, err, "holder")
			r := lock.update(t.Context(), time.Minute, version{7, 1}, map[string]string{keyNonce: "n", keyRefresh: "r2"})
			if r.outcome != unknown {
				t.Errorf("a redirected update is %v", r.outcome)
			}
		})
	}
}
