package grpctest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// plan is which calls fail here, before they get to the backend.
type plan struct {
	mu    sync.Mutex // guards fails
	fails map[string][]error
}

// Fail has the next calls of this HTTP method fail with these codes, one after
// the other, and not be applied. It is for the codes that no HTTP status stands
// for. All other faults are injected into the gcstest server: FailStatus becomes
// the code that the status stands for, and a connection that is cut, before or
// after the request was applied, becomes Unavailable. A hanging request hangs.
func (s *Server) Fail(method string, fails ...codes.Code) {
	s.plan.mu.Lock()
	defer s.plan.mu.Unlock()
	if s.plan.fails == nil {
		s.plan.fails = make(map[string][]error)
	}
	for _, code := range fails {
		s.plan.fails[method] = append(s.plan.fails[method], status.Errorf(code, "grpctest: injected"))
	}
}

func (p *plan) take(method string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	fails := p.fails[method]
	if len(fails) == 0 {
		return nil
	}
	p.fails[method] = fails[1:]
	return fails[0]
}

// broken is what a client gets whose connection is cut: the code does not tell
// whether the request arrived.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Errorf(codes.Unavailable, "error reading from server: %v", err)
}

// refusal is the status that Cloud Storage's gRPC has where its JSON API has
// this one, with the same words.
func refusal(code int, body []byte) error {
	var reply struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &reply); err != nil || reply.Error.Message == "" {
		reply.Error.Message = http.StatusText(code)
	}
	return status.Error(codeOf(code), reply.Error.Message)
}

func codeOf(code int) codes.Code {
	switch code {
	case http.StatusBadRequest:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusConflict:
		return codes.Aborted
	case http.StatusPreconditionFailed:
		return codes.FailedPrecondition
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return codes.Unavailable
	case http.StatusInternalServerError:
		return codes.Internal
	}
	return codes.Unknown
}
