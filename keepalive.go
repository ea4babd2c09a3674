package gcslock

import "time"

// start hands the lease to a caller who wants it watched and, with refresh,
// refreshed.
func (l *Lease) start(refresh bool) {
	// First, so that a loss from now on is a loss of the caller's, and told.
	l.handOver()
	l.mu.Lock()
	l.wait = l.lock.nextRefresh()
	if refresh {
		l.due = make(chan struct{}, 1)
		l.refresher = make(chan struct{})
		go l.keepAlive()
	}
	// Set before its first turn can look for it; tick sets the real time.
	l.watchdog = time.AfterFunc(l.lock.ttl, l.tick)
	l.mu.Unlock()
	l.tick()
}

// nextRefresh is the pause from one refresh to the next, up to a tenth shorter
// than the interval.
func (l *Lock) nextRefresh() time.Duration {
	return l.refreshInterval - l.random(l.refreshInterval/10+1)
}

// tick looks at the clock: it ends a lease whose time is up and wakes the
// refresher when it is due. It runs on a timer, every tenth of the ttl and when
// something is due, and not in the refresher, which may hang in a request;
// every tenth, because timers stand still in suspend and the clock does not.
func (l *Lease) tick() {
	if l.Err() != nil {
		return
	}
	now := l.lock.clock.now()
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	next := min(l.lock.ttl/10, l.left(now))
	toRefresh := l.wait - now.heldSince(l.sent)
	if toRefresh > 0 {
		next = min(next, toRefresh)
	}
	// Never at once: a refresh that is due and hangs would make it spin.
	l.watchdog.Reset(max(next, time.Millisecond))
	l.mu.Unlock()
	if toRefresh <= 0 && l.due != nil {
		select {
		case l.due <- struct{}{}:
		default: // told already
		}
	}
}

// isDue tells whether it is time for a refresh.
func (l *Lease) isDue() bool {
	now := l.lock.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && now.heldSince(l.sent) >= l.wait
}

// keepAlive is the refresher. It ends with the lease's context.
func (l *Lease) keepAlive() {
	defer close(l.refresher)
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.due:
		}
		// Asked again each time: a call of Refresh may have come first, and the
		// lost reply of an attempt long ago is a refresh that is due again.
		for l.isDue() {
			// A failure has been logged and counted, a loss has ended the
			// context, and there is nobody else to tell.
			_ = l.refresh(l.ctx, false)
		}
	}
}
