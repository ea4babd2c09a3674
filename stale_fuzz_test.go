package gcslock

import (
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"
)

// An oracle judges an object by the rules of docs/protocol.md, in numbers of
// nanoseconds that have no bounds, so that it can't go wrong where the library
// does.
type oracle struct {
	metadata map[string]string
	updated  time.Time // zero: not told
	ownTTL   time.Duration

	date    time.Time     // the server's, zero: not known
	age     time.Duration // since the date was told
	watched time.Duration // unchanged
}

func nanos(n time.Duration) *big.Int { return big.NewInt(int64(n)) }

// since1970 are nanoseconds, too.
func since1970(t time.Time) *big.Int {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
	return n.Add(n, big.NewInt(int64(t.Nanosecond())))
}

func plus(a, b *big.Int) *big.Int  { return new(big.Int).Add(a, b) }
func minus(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }

// clamped is n, but within the bounds.
func clamped(n *big.Int, least, most time.Duration) *big.Int {
	switch {
	case n.Cmp(nanos(least)) < 0:
		return nanos(least)
	case n.Cmp(nanos(most)) > 0:
		return nanos(most)
	}
	return n
}

// stale tells whether the object may be deleted.
func (o oracle) stale() bool {
	_, owner := o.metadata["owner"]
	_, nonce := o.metadata["nonce"]
	if !owner && !nonce {
		return false // foreign
	}
	lives, end := o.times()
	if nanos(o.watched).Cmp(lives) >= 0 {
		return true
	}
	if o.date.IsZero() || end == nil || nanos(o.age).Cmp(lives) > 0 {
		return false
	}
	return plus(since1970(o.date), nanos(o.age)).Cmp(end) > 0
}

// times are for how long the object lives unchanged, and the server's time at
// which it ends; nil where that can't be told.
func (o oracle) times() (lives, end *big.Int) {
	const day, allowance = 24 * time.Hour, 10 * time.Second
	var ttl *big.Int
	if d, err := time.ParseDuration(o.metadata["ttl"]); err == nil && d > 0 {
		ttl = clamped(nanos(d), 3*time.Second, day)
	}
	expires, err := time.Parse(time.RFC3339, o.metadata["expires-at"])
	readable := err == nil && !expires.IsZero() && expires.UTC().Year() >= 0 && expires.UTC().Year() <= 9999
	told := !o.updated.IsZero()
	switch {
	case readable && ttl == nil: // the older format
		lives, end = nanos(day), plus(since1970(expires), nanos(allowance))
		if told {
			given := plus(clamped(minus(since1970(expires), since1970(o.updated)), 0, 1<<62), nanos(allowance))
			lives = clamped(given, 0, day)
			if latest := plus(since1970(o.updated), nanos(day)); latest.Cmp(end) < 0 {
				end = latest
			}
		}
		return lives, end
	case readable:
		lives = ttl
	default: // edited by hand
		lives = nanos(o.ownTTL)
		if ttl != nil && ttl.Cmp(lives) > 0 {
			lives = ttl
		}
	}
	if told {
		end = plus(plus(since1970(o.updated), lives), nanos(time.Second))
		if readable && since1970(expires).Cmp(end) > 0 {
			end = since1970(expires)
		}
	}
	return lives, end
}

// FuzzJudge: an object is stale exactly when the rules say so; a live one is
// looked at again in time, and every one but a foreign one ends.
func FuzzJudge(f *testing.F) {
	const second, minute = int64(time.Second), int64(time.Minute)
	at := start.Unix()
	for _, seed := range []struct {
		keys              byte
		ttl, expires      string
		updated, date     int64
		ownTTL, age, seen int64
	}{
		{3, "1m", "2026-11-30T10:01:00Z", at, at + 61, minute, 0, 0},
		{3, "1m", "2026-11-30T10:01:00Z", at, at + 62, minute, 0, 0},
		{3, "1m", "2026-11-30T10:05:00Z", at, at + 62, minute, 0, minute - 1},
		{1, "", "2026-11-30T10:01:00Z", at, at + 70, minute, 0, 0},
		{1, "", "2026-11-30T10:01:00Z", at, at + 70, minute, 1, 0},
		{1, "", "2026-11-30T10:01:00+14:00", 0, 0, minute, 0, 24 * 60 * minute},
		{1, "", "9999-12-31T23:59:59Z", at, 0, minute, 0, second}, // for ever, as a human says it
		{1, "", "9999-12-31T23:59:59Z", at, at + 90000, minute, 0, second},
		{1, "", "0000-01-01T00:00:00Z", at, at, minute, 0, second},
		{3, "1ns", "9999-12-31T23:59:59Z", at, at + 5, minute, 0, second},
		{3, "1ns", "0000-01-01T00:00:00Z", at, at + 4, minute, 0, second},
		{3, "1h", "2026-11-30T10:01:00Z", at, at + 3601, minute, 0, 0}, // the holder's ttl, not ours
		{3, "2562047h", "2026-11-30T10:01:00Z", at, at + 86402, minute, 0, second},
		{2, "", "soon", at, at + 62, 10 * second, 11 * second, 0},
		{2, "1h", "soon", at, at + 3602, 10 * second, 0, 0},
		{0, "1m", "2000-01-01T00:00:00Z", at, at + 1e9, minute, 0, 1 << 62},
		{3, "3s", "x", -62135596800, 253402300799, 3 * second, 0, 1},
		{3, "3s", "x", 253402300799, 253402300799, 3 * second, 3*second - 1, 3*second - 1},
	} {
		f.Add(seed.keys, seed.ttl, seed.expires, seed.updated, seed.date, seed.ownTTL, seed.age, seed.seen)
	}
	f.Fuzz(func(t *testing.T, keys byte, ttl, expires string, updated, date, ownTTL, age, watched int64) {
		o := oracle{
			metadata: map[string]string{"ttl": ttl, "expires-at": expires},
			updated:  second4(updated), date: second4(date),
			ownTTL:  min(max(time.Duration(ownTTL), minTTL), maxTTL),
			age:     max(time.Duration(age), 0),
			watched: max(time.Duration(watched), 0),
		}
		if keys&1 != 0 {
			o.metadata["owner"] = "o"
		}
		if keys&2 != 0 {
			o.metadata["nonce"] = "n"
		}
		o.check(t)
	})
}

// second4 is a second of a year with four digits, as replies over JSON have it,
// or the zero time.
func second4(n int64) time.Time {
	if t := time.Unix(n, 0).UTC(); n > -62135596800 && n <= 253402300799 {
		return t
	}
	return time.Time{}
}

// check holds the library's judgement against the oracle's.
func (o oracle) check(t *testing.T) {
	t.Helper()
	const now = 1 << 62 // of the monotonic clock, so that both can be before it
	w := watch{server: &serverClock{}, ownTTL: o.ownTTL}
	w.server.note(o.date, reading{mono: now - o.age})
	w.see(stored{version: version{7, 1}, metadata: o.metadata, updated: o.updated}, reading{mono: now - o.watched})
	// What no rule lets count is as far off as it can be.
	at := reading{mono: now, awake: 1<<63 - 1, wall: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	v := w.judge(at)
	if want := o.stale(); v.stale != want {
		t.Errorf("%+v is judged %+v, want stale: %v", o, v, want)
	}
	switch {
	case w.record.foreign():
		if v.wait != 0 {
			t.Errorf("time helps a foreign object: %+v", v)
		}
	case v.stale:
		if v.reason == "" {
			t.Errorf("%+v is stale for no reason", o)
		}
	case v.wait <= 0 || v.wait > 24*time.Hour:
		t.Errorf("%+v is looked at again after %v", o, v.wait)
	}
	at.mono += 24 * time.Hour
	if v := w.judge(at); !v.stale && !w.record.foreign() {
		t.Errorf("%+v lives for ever: %+v", o, v)
	}
}

// fixdate is the form of a Date that servers send (RFC 9110, section 5.6.7).
var fixdate = regexp.MustCompile(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) (\d\d:\d\d:\d\d) GMT$`)

// dateInstant is the Date's instant in nanoseconds since 1970; false where the
// text has another form.
func dateInstant(text string) (*big.Int, bool) {
	m := fixdate.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	month := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", m[2])/3 + 1
	return instant(fmt.Sprintf("%s-%02d-%sT%sZ", m[3], month, m[1], m[4]))
}

// FuzzDate: the Date of a reply is read as the instant that it is, and an object
// is stale by it exactly when the rules say so. The forms that net/http takes
// beside the one that servers send are read as its time, too.
func FuzzDate(f *testing.F) {
	for _, date := range []string{
		"Mon, 30 Nov 2026 10:01:01 GMT", "Mon, 30 Nov 2026 10:01:02 GMT", "Monday, 30-Nov-26 10:01:02 GMT", "Mon Nov 30 10:01:02 2026",
		"Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "Sat, 01 Jan 0000 00:00:00 GMT", "Mon, 30 Nov 2026 10:01:02 CET",
		"SAt, 01 JAn 0000 0:00:00 GMT", "monday, 30-Nov-+6 10:01:02 GMT", "Mon, 30 Feb 2026 10:01:02 GMT", "Tue, 30 Nov 2026 10:01:02 GMT",
		"", "0", "yesterday", "1796032862", "2026-11-30T10:01:02Z", "Mon, 30 Nov 2026 25:01:02 GMT", "Mon, 30 Nov 2026 10:01:02 GMT, x",
	} {
		f.Add(date, start.Unix())
	}
	f.Fuzz(func(t *testing.T, text string, updated int64) {
		date := dateOf(&googleapi.Error{Code: http.StatusPreconditionFailed, Header: http.Header{"Date": {text}}})
		o := oracle{metadata: liveObject().metadata, updated: second4(updated), ownTTL: time.Minute, date: date}
		o.check(t)
		if want, ok := dateInstant(text); ok && since1970(date).Cmp(want) != 0 {
			t.Errorf("%q is taken for %v", text, date)
		}
		if !date.IsZero() && !strings.Contains(text, date.Format(":04:05")) {
			t.Errorf("%q is taken for %v", text, date)
		}
	})
}
