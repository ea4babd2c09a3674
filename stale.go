package gcslock

import (
	"fmt"
	"sync"
	"time"
)

const (
	// serverSlack is how far apart the clocks behind Date and behind an
	// object's updated time may be, with Date's own resolution of a second.
	serverSlack = time.Second

	// olderAllowance is what an object of the older format gets beyond its
	// expires-at: for its writer's clock, and for a refresh under way.
	olderAllowance = 10 * time.Second
)

// A serverClock knows the server's time from the Date of a reply, carried
// forward on the local clock. Both the header's resolution and the reply's way
// make it late rather than early.
type serverClock struct {
	mu   sync.Mutex // guards date and seen
	date time.Time  // zero: none seen yet
	seen reading    // when its reply had arrived
}

// note takes the Date of a reply that had arrived at the reading.
func (c *serverClock) note(date time.Time, at reading) {
	if date.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date, c.seen = date, at
}

// now is the server's time, and how long it has been carried forward. It is
// zero where no Date has been seen.
func (c *serverClock) now(at reading) (now time.Time, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return time.Time{}, 0
	}
	age = at.watchedSince(c.seen)
	return c.date.Add(age), age
}

// A sighting is what must stay the same for a lock to count as not refreshed.
// It has more than the version because stock fake-gcs-server moves neither
// the metageneration nor the updated time on a metadata update.
type sighting struct {
	version
	refresh, expires string
}

// A watch follows one lock object for one waiter, and judges whether its
// holder is gone. It is not safe for concurrent use.
type watch struct {
	server *serverClock
	ownTTL time.Duration // the waiter's, for objects that do not tell theirs

	object stored
	record record
	seen   sighting
	since  reading // after the reply that first showed this sighting
}

// see takes what a reply showed that had arrived at the reading. A waiter
// counts from after its read, a holder from before its write: whatever the
// network did in between makes both err on the same side.
func (w *watch) see(obj stored, at reading) {
	rec := readRecord(obj.metadata)
	seen := sighting{obj.version, rec.refresh, rec.expiresText}
	if seen != w.seen {
		w.seen, w.since = seen, at
	}
	w.object, w.record = obj, rec
}

// A verdict is what a waiter may do about the object that it watches.
type verdict struct {
	stale  bool
	reason string        // why it is stale
	why    Reason        // the same, for an observer
	wait   time.Duration // else: look again after this at the latest; 0 where time will not help
}

// judge applies the rules to the object last seen. Never two machines' clocks
// against each other: either the server's against the server's, or one stretch
// of the waiter's own; the older format, which leaves no such choice, aside.
func (w *watch) judge(now reading) verdict {
	switch {
	case w.record.foreign():
		return verdict{}
	case w.older():
		return w.judgeOlder(now)
	}
	return w.judgeTTL(now)
}

// older tells whether the object is of the older format.
func (w *watch) older() bool { return w.record.ttl == 0 && !w.record.expires.IsZero() }

// ttl is for how long an object that does not change may have a holder.
func (w *watch) ttl() time.Duration {
	switch {
	case w.record.expires.IsZero():
		// Edited by hand. Its ttl may have been, too: the longer one counts.
		return max(w.ownTTL, w.record.ttl)
	case !w.older():
		return w.record.ttl
	case w.object.updated.IsZero():
		return maxTTL
	}
	// What its writer gave it by its own clock, as far as that agrees with the
	// server's, and the allowance. Cut off before it is added to: an expires-at in
	// the year 9999 is further off than a duration reaches.
	given := min(max(w.record.expires.Sub(w.object.updated), 0), maxTTL)
	return min(given+olderAllowance, maxTTL)
}

// serverNow is the server's time, zero where it is not known well enough: a Date
// is carried forward for a ttl at the most. In that time a clock that runs fast
// by less than a tenth, of which the holder's may have used a part in being
// slow, gains less than the tenth of the ttl by which the holder's validity ends
// early. After that time watching tells, too.
func (w *watch) serverNow(now reading) time.Time {
	server, age := w.server.now(now)
	if age > w.ttl() {
		return time.Time{}
	}
	return server
}

// judgeTTL judges by the time that passed without a sign of life.
func (w *watch) judgeTTL(now reading) verdict {
	ttl, unchanged := w.ttl(), now.watchedSince(w.since)
	if unchanged >= ttl {
		return verdict{stale: true, why: ReasonUnchanged, reason: fmt.Sprintf("unchanged for %v, its ttl is %v", unchanged.Round(time.Millisecond), ttl)}
	}
	wait := ttl - unchanged
	server, end := w.serverNow(now), w.end()
	if server.IsZero() || end.IsZero() {
		return verdict{wait: wait}
	}
	if server.After(end) {
		return verdict{stale: true, why: ReasonExpired, reason: fmt.Sprintf("by the server's clock its ttl of %v has been over since %s", ttl, timestamp(end))}
	}
	return verdict{wait: min(wait, justPast(end.Sub(server)))}
}

// judgeOlder judges an object without a ttl by its expires-at, at the server's
// time, or by watching it for as long as its writer gave it. Our wall clock has
// no say, even where no reply has told the server's time yet: one that is
// minutes ahead would take the lock from a live holder.
func (w *watch) judgeOlder(now reading) verdict {
	given, unchanged := w.ttl(), now.watchedSince(w.since)
	if unchanged >= given {
		return verdict{stale: true, why: ReasonUnchanged, reason: fmt.Sprintf("an object of the older format, unchanged for %v", unchanged.Round(time.Millisecond))}
	}
	wait := given - unchanged
	server, end := w.serverNow(now), w.end()
	if server.IsZero() {
		return verdict{wait: wait}
	}
	if server.After(end) {
		return verdict{stale: true, why: ReasonExpired, reason: fmt.Sprintf("an object of the older format, over since %s", timestamp(end))}
	}
	return verdict{wait: min(wait, justPast(end.Sub(server)))}
}

// end is when, on the server's clock, the object last seen is stale unless it
// changes before; zero where that clock will never tell.
func (w *watch) end() time.Time {
	updated := w.object.updated
	switch {
	case w.record.foreign():
		return time.Time{}
	case w.older():
		end := w.record.expires.Add(olderAllowance)
		if latest := updated.Add(maxTTL); !updated.IsZero() && latest.Before(end) {
			end = latest
		}
		return end
	case updated.IsZero():
		return time.Time{}
	}
	end := updated.Add(w.ttl() + serverSlack)
	// The holder's clock has a say only in its favour. A zero time, of an
	// expiry that can't be read, is past.
	if w.record.expires.After(end) {
		end = w.record.expires
	}
	return end
}

// justPast is a pause that ends after what is left. More than the longest ttl
// counts as that, because watching tells by then.
func justPast(left time.Duration) time.Duration { return min(left, maxTTL) + time.Millisecond }
