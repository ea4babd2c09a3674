package gcslock

import (
	"context"
	"slices"
	"sync"
)

// A queue orders those who wait for a lock through the same Lock: whoever came
// first goes first, and alone talks to the bucket. The rest send nothing.
type queue struct {
	mu     sync.Mutex      // guards the rest
	taken  bool            // somebody has the turn
	next   []chan struct{} // of those who wait for it, closed to pass it on
	lease  *Lease          // won through this Lock, and neither lost nor given up yet
	heir   chan tenure     // of who has the turn and waits for lease to end, see await; nil if nobody does
	holder *Info           // who keeps those out who wait, as far as they know
}

// enter waits for the turn. Who gets it must leave.
func (q *queue) enter(ctx context.Context) error {
	q.mu.Lock()
	if !q.taken {
		q.taken = true
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q.next = append(q.next, turn)
	q.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return nil
	}
	if !q.forget(turn) {
		q.leave() // it came just as ctx ended
	}
	return ctx.Err()
}

// forget drops one who waits. It is false if the turn has been passed to it.
func (q *queue) forget(turn chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.next, turn)
	if i < 0 {
		return false
	}
	q.next = slices.Delete(q.next, i, i+1)
	return true
}

// leave passes the turn on.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.next) == 0 {
		q.taken, q.holder = false, nil // nobody looks at the holder from now on
		return
	}
	close(q.next[0])
	q.next = q.next[1:]
}

// meets notes who holds the lock, for those who wait for their turn; nil if
// nobody does.
func (q *queue) meets(holder *Info) {
	if holder != nil {
		copied := *holder
		holder = &copied
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.holder = holder
}

// won notes a lease that is about to be handed to a caller.
func (q *queue) won(l *Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lease, q.holder = l, nil
}

// over notes that nobody need wait for the lease any more: it is lost, or its
// object was given up.
func (q *queue) over(l *Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lease != l {
		return
	}
	q.lease = nil
	if q.heir != nil {
		close(q.heir)
		q.heir = nil
	}
}

// current is the lease that keeps the others of this Lock out, nil if there is
// none.
func (q *queue) current() *Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lease
}

// owns tells whether the object is that of such a lease.
func (q *queue) owns(obj stored) bool {
	l := q.current()
	return l != nil && l.token == obj.generation
}

// inTurn runs for the lock when it is this acquisition's turn.
func (a *acquisition) inTurn(ctx context.Context) (*Lease, error) {
	if err := a.queue.enter(ctx); err != nil {
		return nil, a.gaveUpInQueue(ctx, err)
	}
	defer a.queue.leave()
	lease, err := a.run(ctx, stepAwait)
	if err == nil && lease.sequence == 1 {
		a.noteWait()
	}
	return lease, err
}

// gaveUpInQueue tells what those knew who had the turn.
func (a *acquisition) gaveUpInQueue(ctx context.Context, ended error) error {
	a.queue.mu.Lock()
	lease, holder := a.queue.lease, a.queue.holder
	a.queue.mu.Unlock()
	switch {
	case lease != nil:
		a.locked, a.holder = true, lease.info()
	case holder != nil:
		a.locked, a.holder = true, *holder
	}
	return a.gaveUp(ctx, ended)
}
