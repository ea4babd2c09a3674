package gcstest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Action is what a Fault does to a request. The functions that return one say
// what it is. Waiting ends with the request's context at the latest, and the
// client then gets the context's error; over a listener the context ends when
// the client goes away.
type Action interface {
	// meet handles a request: send applies it, and returns the reply.
	meet(ctx context.Context, in *Injection, c *call, send func() *reply) (*reply, error)
}

type action func(ctx context.Context, in *Injection, c *call, send func() *reply) (*reply, error)

func (a action) meet(ctx context.Context, in *Injection, c *call, send func() *reply) (*reply, error) {
	return a(ctx, in, c, send)
}

// errCut is what a client in process gets for a connection that breaks: what
// net/http reports when that happens in the middle of a reply. Over a listener
// it is whatever the client's own transport makes of a closed connection.
var errCut = io.ErrUnexpectedEOF

// FailStatus answers with an HTTP status, and does not apply the request.
func FailStatus(code int) Action {
	return action(func(context.Context, *Injection, *call, func() *reply) (*reply, error) {
		return failure(code, detail{
			Message: fmt.Sprintf("gcstest: injected: %s", http.StatusText(code)), Reason: reasonOf(code),
		}), nil
	})
}

// reasonOf is the word that Cloud Storage's JSON API has for a status.
func reasonOf(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "authError"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusNotFound:
		return "notFound"
	case http.StatusRequestTimeout:
		return "uploadBrokenConnection"
	case http.StatusConflict:
		return "conflict"
	case http.StatusPreconditionFailed:
		return "conditionNotMet"
	case http.StatusTooManyRequests:
		return "rateLimitExceeded"
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		return "backendError"
	}
	return "invalid"
}

// Forbid answers 403 as for a caller without this permission, for example
// "storage.objects.delete", and does not apply the request. Choose with
// Fault.Op which requests need it.
func Forbid(permission string) Action {
	return action(func(_ context.Context, _ *Injection, c *call, _ func() *reply) (*reply, error) {
		return forbidden(c.key(), permission), nil
	})
}

// DropRequest breaks the connection, and does not apply the request.
func DropRequest() Action {
	return action(func(context.Context, *Injection, *call, func() *reply) (*reply, error) {
		return nil, errCut
	})
}

// Withhold breaks the connection and keeps the request back, as a network does
// that delivers it late: Injection.Deliver applies it.
func Withhold() Action {
	return action(func(_ context.Context, in *Injection, _ *call, send func() *reply) (*reply, error) {
		in.withhold(send)
		return nil, errCut
	})
}

// LoseReply applies the request, and breaks the connection instead of replying.
func LoseReply() Action {
	return action(func(_ context.Context, _ *Injection, _ *call, send func() *reply) (*reply, error) {
		send()
		return nil, errCut
	})
}

// TruncateReply applies the request, and breaks the connection half-way through
// the reply's body. A reply without one arrives whole.
func TruncateReply() Action {
	return action(func(_ context.Context, _ *Injection, _ *call, send func() *reply) (*reply, error) {
		rep := send()
		rep.cut = len(rep.body) > 0
		return rep, nil
	})
}

// GarbleReply applies the request, and replies with its status and a body that
// isn't JSON, as a proxy in between might.
func GarbleReply() Action {
	return action(func(_ context.Context, _ *Injection, _ *call, send func() *reply) (*reply, error) {
		rep := send()
		rep.header.Set("Content-Type", "text/html")
		rep.setBody([]byte("<html>gcstest: garbled</html>\n"))
		return rep, nil
	})
}

// Delay applies the request after d.
func Delay(d time.Duration) Action {
	return before(func(ctx context.Context, in *Injection) error { return pause(ctx, in, d) })
}

// DelayReply applies the request, and replies after d.
func DelayReply(d time.Duration) Action {
	return after(func(ctx context.Context, in *Injection) error { return pause(ctx, in, d) })
}

// Hang never answers, and applies the request only if the fault is removed
// while it hangs: it then goes on as if nothing had been.
func Hang() Action { return before(hang) }

// HangReply applies the request, and never answers, unless the fault is removed.
func HangReply() Action { return after(hang) }

// Hold waits at the barrier before it applies the request.
func Hold(b *Barrier) Action { return before(b.hold) }

// HoldReply applies the request, and waits at the barrier before it replies.
func HoldReply(b *Barrier) Action { return after(b.hold) }

// before and after wait with no lock held, on channels and timers of the
// request's own goroutine.
func before(wait func(context.Context, *Injection) error) Action {
	return action(func(ctx context.Context, in *Injection, _ *call, send func() *reply) (*reply, error) {
		if err := wait(ctx, in); err != nil {
			return nil, err
		}
		return send(), nil
	})
}

func after(wait func(context.Context, *Injection) error) Action {
	return action(func(ctx context.Context, in *Injection, _ *call, send func() *reply) (*reply, error) {
		rep := send()
		if err := wait(ctx, in); err != nil {
			return nil, err
		}
		return rep, nil
	})
}

func pause(ctx context.Context, in *Injection, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-in.removed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func hang(ctx context.Context, in *Injection) error {
	select {
	case <-in.removed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
