package gcslock

import "slices"

// reclaims tells whether the object is a leftover of our own, see WithReclaim. What
// this Lock has made itself is none: a lease, or one that another goroutine is
// about to have.
func (a *acquisition) reclaims(obj stored) bool {
	if !a.reclaim || !a.watch.record.hasOwner || a.watch.record.owner != a.owner || a.queue.owns(obj) {
		return false
	}
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	return !slices.Contains(a.queue.nonces, obj.metadata[keyNonce])
}

// tries notes a create that is about to be sent.
func (a *acquisition) tries(nonce string) {
	if !a.reclaim {
		return
	}
	a.tried = append(a.tried, nonce)
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	a.queue.nonces = append(a.queue.nonces, nonce)
}

// ends drops the creates of an acquisition that is over.
func (a *acquisition) ends() {
	if len(a.tried) == 0 {
		return
	}
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	a.queue.nonces = slices.DeleteFunc(a.queue.nonces, func(n string) bool { return slices.Contains(a.tried, n) })
}
