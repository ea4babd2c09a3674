package gcstest

import (
	"context"
	"fmt"
	"sync"
)

// Barrier holds requests (see Hold and HoldReply) until the test lets them go.
// It is safe for concurrent use. In a synctest bubble make it inside.
type Barrier struct {
	released chan struct{}

	mu      sync.Mutex    // guards the rest
	arrived int           // requests so far
	changed chan struct{} // closed, and replaced, when arrived changes
	open    bool
}

// NewBarrier returns a barrier that holds every request.
func NewBarrier() *Barrier {
	return &Barrier{released: make(chan struct{}), changed: make(chan struct{})}
}

// Arrived waits until n requests have arrived at the barrier, those that have
// left it included.
func (b *Barrier) Arrived(ctx context.Context, n int) error {
	for {
		b.mu.Lock()
		arrived, changed := b.arrived, b.changed
		b.mu.Unlock()
		if arrived >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("gcstest: %d of %d requests at the barrier: %w", arrived, n, context.Cause(ctx))
		}
	}
}

// Release lets all requests go, now and later. Further calls do nothing.
func (b *Barrier) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		b.open = true
		close(b.released)
	}
}

func (b *Barrier) hold(ctx context.Context, in *Injection) error {
	b.mu.Lock()
	b.arrived++
	close(b.changed)
	b.changed = make(chan struct{})
	b.mu.Unlock()
	select {
	case <-b.released:
	case <-in.removed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
