package otelgcslock

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/status"

	"github.com/gcslock/gcslock"
)

// errorType is the error's class, one of a few, as the semantic conventions ask
// for: what the lock says of it, how the wait ended, or the server's code.
func errorType(err error) string {
	var api *googleapi.Error
	switch {
	case errors.Is(err, gcslock.ErrLockAbandoned):
		return "lock_abandoned"
	case errors.Is(err, gcslock.ErrLocked):
		return "locked"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &api):
		return strconv.Itoa(api.Code)
	}
	if s, ok := status.FromError(err); ok {
		return s.Code().String()
	}
	return "_OTHER"
}
