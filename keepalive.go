package gcslock

import "time"

// start hands the lease to a caller who wants it watched and, with refresh,
// refreshed.
func (l *Lease) start(refresh bool) {
	// First, so that a loss from now on is a loss of the caller's, and told.
	l.handOver()
	l.mu.Lock()
	l.wait, l.automatic = l.firstRefresh(), refresh
	// Set before its first turn can look for it; tick sets the real time.
	l.watchdog = time.AfterFunc(l.lock.ttl, l.tick)
	l.mu.Unlock()
	l.tick()
}

// firstRefresh is the pause from the create to the first refresh: from a fifth of
// the interval to all of it, at random, so that leases taken together are spread
// from then on. From 0 on would be smoother than is needed, and short holds would
// pay for it; and within a second of the create Cloud Storage may refuse it, see
// changeInterval. A lease that was passed on takes no part: with a new draw at each
// hand-over the shortest would win.
func (l *Lease) firstRefresh() time.Duration {
	if l.sequence > 1 {
		return l.lock.nextRefresh()
	}
	interval := l.lock.refreshInterval
	shortest := max(interval/5, min(changeInterval, interval*9/10))
	return interval - l.lock.random(interval-shortest+1)
}

// nextRefresh is the pause from one refresh to the next, up to a tenth shorter
// than the interval.
func (l *Lock) nextRefresh() time.Duration {
	return l.refreshInterval - l.random(l.refreshInterval/10+1)
}

// tick looks at the clock: it ends a lease whose time is up and starts the
// refresher when a refresh is due. It runs on a timer, every tenth of the ttl and
// when something is due, and not in the refresher, which may hang in a request;
// every tenth, because timers stand still in suspend and the clock does not.
// Between two refreshes a lease has no goroutine: its stack would be most of what
// an idle lease takes.
func (l *Lease) tick() {
	if l.Err() != nil {
		return
	}
	now := l.lock.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	next := min(l.lock.ttl/10, l.left(now))
	toRefresh := l.wait - now.heldSince(l.sent)
	if toRefresh > 0 {
		next = min(next, toRefresh)
	}
	// Never at once: a refresh that is due and hangs would make it spin.
	l.watchdog.Reset(max(next, time.Millisecond))
	if l.automatic && toRefresh <= 0 && !l.refreshing {
		l.refreshing = true
		l.refresher.Go(l.keepAlive)
	}
}

// isDue tells the refresher whether it is time for a refresh. If not it is no
// more, and the next one is started by a tick.
func (l *Lease) isDue() bool {
	now := l.lock.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refreshing = l.err == nil && now.heldSince(l.sent) >= l.wait
	return l.refreshing
}

// keepAlive is the refresher. It is asked again each time whether a refresh is due:
// a call of Refresh may have come first, and the lost reply of an attempt long ago
// is a refresh that is due again.
func (l *Lease) keepAlive() {
	for l.isDue() {
		// A failure has been logged and counted, a loss has ended the context,
		// and there is nobody else to tell.
		_ = l.refresh(l.ctx, false)
	}
}
