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
	nonces []string        // of the creates of acquisitions that are under way; WithReclaim alone
}

// join gets in line. The channel is closed when it is one's turn. Whoever joins must
// leave, or quit.
func (q *queue) join() (turn chan struct{}) {
	turn = make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken {
		q.next = append(q.next, turn)
		return turn
	}
	q.taken = true
	close(turn)
	return turn
}

// quit leaves, with the turn or without: it may come just as its context ends.
func (q *queue) quit(turn chan struct{}) {
	q.mu.Lock()
	i := slices.Index(q.next, turn)
	if i >= 0 {
		q.next = slices.Delete(q.next, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 {
		q.leave()
	}
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
	turn := a.queue.join()
	select {
	case <-turn:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		a.learn() // before it quits: with the last one what was known is forgotten
		a.queue.quit(turn)
		return nil, a.gaveUp(ctx, ctx.Err())
	}
	defer a.queue.leave()
	lease, err := a.run(ctx, stepAwait)
	if err == nil && lease.sequence == 1 {
		a.noteRound()
	}
	return lease, err
}

// learn takes over what those know who had the turn.
func (a *acquisition) learn() {
	a.queue.mu.Lock()
	lease, holder := a.queue.lease, a.queue.holder
	a.queue.mu.Unlock()
	switch {
	case lease != nil:
		a.locked, a.holder = true, lease.info()
	case holder != nil:
		a.locked, a.holder = true, *holder
	}
}
