package gcslock

import (
	"testing"
	"time"
)

// start is when the tests' objects are written, by every clock.
var start = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// liveObject is an object of the current format, just refreshed, with a ttl of
// a minute.
func liveObject() stored {
	return stored{
		version: version{7, 3},
		updated: start,
		metadata: map[string]string{
			keyOwner: "holder", keyNonce: "n", keyTTL: "1m0s", keyRefresh: "r1",
			keyExpiresAt: timestamp(start.Add(time.Minute)),
		},
	}
}

// with is the object with one metadata key changed; an empty value removes it.
func with(obj stored, key, value string) stored {
	md := map[string]string{}
	for k, v := range obj.metadata {
		md[k] = v
	}
	if md[key] = value; value == "" {
		delete(md, key)
	}
	obj.metadata = md
	return obj
}

// after is a reading this long after the tests' start, on clocks that agree.
func after(d time.Duration) reading {
	return reading{mono: d, awake: d, wall: start.Add(d)}
}

// TestStaleByServer judges by the server's clock alone: the object is met for
// the first time.
func TestStaleByServer(t *testing.T) {
	const minute, second = time.Minute, time.Second
	for _, tt := range []struct {
		name   string
		object stored
		ownTTL time.Duration
		lives  time.Duration // the last instant, after start, at which it is live
	}{
		{"ttl and a second after updated", liveObject(), minute, minute + second},
		{"the holder's ttl counts, not the waiter's", liveObject(), 10 * second, minute + second},
		{"a holder whose clock is ahead gets its expires-at", with(liveObject(), keyExpiresAt, timestamp(start.Add(5*minute))), minute, 5 * minute},
		{"a holder whose clock is behind gets its ttl", with(liveObject(), keyExpiresAt, timestamp(start.Add(-minute))), minute, minute + second},
		{"a ttl over 24 h counts as 24 h", with(liveObject(), keyTTL, "100h"), minute, 24*time.Hour + second},
		{"unreadable expiry: the waiter's ttl", with(with(liveObject(), keyExpiresAt, "x"), keyTTL, ""), 2 * minute, 2*minute + second},
		{"unreadable expiry: the longer ttl", with(liveObject(), keyExpiresAt, "x"), 10 * second, minute + second},
		{"older format: expires-at and 10 s", with(liveObject(), keyTTL, ""), minute, minute + 10*second},
		{"unreadable ttl: the older format", with(liveObject(), keyTTL, "x"), minute, minute + 10*second},
		{"older format: 24 h after updated at the latest", with(with(liveObject(), keyTTL, ""), keyExpiresAt, timestamp(start.AddDate(9, 0, 0))), minute, 24 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, at := range []time.Duration{tt.lives, tt.lives + 1} {
				// The waiter's wall clock is a day ahead: it has no say.
				now := reading{wall: start.AddDate(0, 0, 1)}
				w := watch{server: &serverClock{date: start.Add(at)}, ownTTL: tt.ownTTL}
				w.see(tt.object, now)
				if end := w.end(); !end.Equal(start.Add(tt.lives)) {
					t.Errorf("ends at %v, want %v after the last sign of life", end, tt.lives)
				}
				v := w.judge(now)
				if stale := at > tt.lives; v.stale != stale {
					t.Errorf("%v after the last sign of life: stale is %v (%s), want %v", at, v.stale, v.reason, stale)
				}
				if !v.stale && v.wait <= 0 {
					t.Errorf("%v after: live, with a wait of %v", at, v.wait)
				}
			}
		})
	}
}

// TestServerClockCarried carries a Date forward on the waiter's clock, but not
// by a wall clock, not by time spent in suspend, and not for longer than the ttl.
// Found by the simulator: carried for minutes on a clock that runs 4 % fast, it
// took the lock from a live holder.
func TestServerClockCarried(t *testing.T) {
	w := watch{server: &serverClock{}, ownTTL: time.Minute}
	w.server.note(start.Add(10*time.Second), after(10*time.Second))
	w.see(liveObject(), after(50*time.Second)) // first met late: watching says nothing yet
	if v := w.judge(after(61 * time.Second)); v.stale {
		t.Errorf("stale 61 s after the Date: %s", v.reason)
	}
	if v := w.judge(after(61*time.Second + 1)); !v.stale {
		t.Error("live more than 61 s after the Date")
	}
	suspended := reading{mono: 55 * time.Second, awake: time.Hour, wall: start.Add(time.Hour)}
	if v := w.judge(suspended); v.stale {
		t.Errorf("stale by time that only the clocks of a holder may count: %s", v.reason)
	}
	for _, tt := range []struct {
		at    time.Duration
		stale bool
	}{{70 * time.Second, true}, {70*time.Second + 1, false}} {
		late := after(tt.at)
		w.see(with(liveObject(), keyRefresh, tt.at.String()), late)
		if v := w.judge(late); v.stale != tt.stale {
			t.Errorf("by a Date carried forward for %v: stale is %v (%s), want %v", tt.at-10*time.Second, v.stale, v.reason, tt.stale)
		}
	}
}

// TestStaleByWatching judges without any Date, as over gRPC.
func TestStaleByWatching(t *testing.T) {
	w := watch{server: &serverClock{}, ownTTL: 10 * time.Second}
	w.see(liveObject(), after(time.Hour)) // long past expires-at by our wall clock
	for _, tt := range []struct {
		at    time.Duration
		stale bool
	}{{0, false}, {time.Minute - 1, false}, {time.Minute, true}} {
		if v := w.judge(after(time.Hour + tt.at)); v.stale != tt.stale {
			t.Errorf("watched for %v: stale is %v, want %v", tt.at, v.stale, tt.stale)
		}
	}
	if v := w.judge(after(time.Hour + 20*time.Second)); v.wait != 40*time.Second {
		t.Errorf("wait of %v after 20 s of watching, want 40 s", v.wait)
	}
}

// TestSightingParts: each part alone is a sign of life. refresh and expires-at
// are all that stock fake-gcs-server moves.
func TestSightingParts(t *testing.T) {
	replaced, updated := liveObject(), liveObject()
	replaced.generation++
	updated.metageneration++
	for name, obj := range map[string]stored{
		"generation": replaced, "metageneration": updated,
		"refresh":    with(liveObject(), keyRefresh, "r2"),
		"expires-at": with(liveObject(), keyExpiresAt, timestamp(start.Add(2*time.Minute))),
	} {
		w := watch{server: &serverClock{}, ownTTL: time.Minute}
		w.see(liveObject(), after(0))
		w.see(obj, after(time.Second))
		if v := w.judge(after(time.Minute)); v.stale {
			t.Errorf("a new %s is no sign of life: %s", name, v.reason)
		}
		if v := w.judge(after(time.Minute + time.Second)); !v.stale {
			t.Errorf("a new %s keeps it alive for longer than a ttl", name)
		}
	}
}

// TestOlderFormatWithoutDate: as long as its writer gave it, and the allowance,
// watched unchanged. Found by the simulator: our wall clock used to decide, and
// one that is ahead took the lock from a live holder.
func TestOlderFormatWithoutDate(t *testing.T) {
	ahead := func(d time.Duration) reading {
		return reading{mono: d, awake: d, wall: start.Add(d + time.Hour)}
	}
	older := with(liveObject(), keyTTL, "") // a minute from updated to expires-at
	noTime := older
	noTime.updated = time.Time{}
	for _, tt := range []struct {
		name   string
		object stored
		lives  time.Duration // watched for less than this it is live
	}{
		{"a minute and 10 s", older, 70 * time.Second},
		{"a writer whose clock is behind", with(older, keyExpiresAt, timestamp(start.Add(-time.Hour))), 10 * time.Second},
		{"24 h at the most", with(older, keyExpiresAt, timestamp(start.AddDate(9, 0, 0))), 24 * time.Hour},
		{"24 h even if it is meant for ever", with(older, keyExpiresAt, "9999-12-31T23:59:59Z"), 24 * time.Hour},
		{"24 h where the server tells no time of update", noTime, 24 * time.Hour},
	} {
		w := watch{server: &serverClock{}, ownTTL: time.Minute}
		w.see(tt.object, ahead(0))
		if v := w.judge(ahead(tt.lives - 1)); v.stale || v.wait != 1 {
			t.Errorf("%s: just before, stale is %v (%s), wait %v", tt.name, v.stale, v.reason, v.wait)
		}
		if v := w.judge(ahead(tt.lives)); !v.stale {
			t.Errorf("%s: live after %v", tt.name, tt.lives)
		}
	}
}

// TestInfoStale: by the server's clock where it is known, else by expires-at.
func TestInfoStale(t *testing.T) {
	expired := with(liveObject(), keyExpiresAt, timestamp(start.Add(-time.Second)))
	for _, tt := range []struct {
		name  string
		date  time.Time
		obj   stored
		stale bool
	}{
		{"no Date, not expired", time.Time{}, liveObject(), false},
		{"no Date, expired", time.Time{}, expired, true},
		{"the server says live", start.Add(time.Second), expired, false},
		{"the server says stale", start.Add(time.Hour), expired, true},
		{"foreign", start.Add(time.Hour), golden(t, "terraform"), false},
		{"unreadable, no Date", time.Time{}, with(liveObject(), keyExpiresAt, "x"), false},
	} {
		l := &Lock{settings: settings{ttl: time.Minute}}
		l.server.note(tt.date, after(0))
		if info := l.info(tt.obj, after(0)); info.Stale != tt.stale {
			t.Errorf("%s: stale is %v, want %v", tt.name, info.Stale, tt.stale)
		}
	}
}

// TestStaleAfter is known for all but foreign objects, and ones whose server
// does not tell when they were written.
func TestStaleAfter(t *testing.T) {
	neverUpdated := liveObject()
	neverUpdated.updated = time.Time{}
	for _, tt := range []struct {
		name string
		obj  stored
		want time.Time
	}{
		{"live", liveObject(), start.Add(time.Minute + time.Second)},
		{"foreign", golden(t, "terraform"), time.Time{}},
		{"never updated", neverUpdated, time.Time{}},
		{"in the year 9999", with(liveObject(), keyExpiresAt, "9999-12-31T23:59:59Z"), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
	} {
		l := &Lock{settings: settings{ttl: time.Minute}}
		if info := l.info(tt.obj, after(0)); !info.StaleAfter.Equal(tt.want) {
			t.Errorf("%s: stale after %v, want %v", tt.name, info.StaleAfter, tt.want)
		}
	}
}
