package gcslock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// isLoss asserts that err is ErrLockAbandoned and nothing that it must not be.
func isLoss(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrLockAbandoned) || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrLocked) {
		t.Errorf("%s is %v, want ErrLockAbandoned", what, err)
	}
}

// isHeld asserts that err tells that somebody else holds the lock, and who.
func isHeld(t *testing.T, err error, owner string) *HeldError {
	t.Helper()
	var held *HeldError
	if !errors.As(err, &held) || !errors.Is(err, ErrLocked) {
		t.Fatalf("error is %v, want a HeldError", err)
	}
	if held.Holder.Owner != owner {
		t.Errorf("held by %q, want %q", held.Holder.Owner, owner)
	}
	return held
}

// says asserts that an error's text has all the parts.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if n := strings.Count(err.Error(), "gcslock: "); n != 1 {
		t.Errorf("error %q has the package's prefix %d times", err, n)
	}
}

// isContext asserts that err is, or is not, the end of a context.
func isContext(t *testing.T, err, want error) {
	t.Helper()
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) != (end == want) {
			t.Errorf("error %v is %v: %v", err, end, errors.Is(err, end))
		}
	}
}

// took asserts how much virtual time has passed since began.
func took(t *testing.T, what string, began time.Time, least, most time.Duration) {
	t.Helper()
	if d := time.Since(began); d < least || d > most {
		t.Errorf("%s took %v, want %v to %v", what, d, least, most)
	}
}
