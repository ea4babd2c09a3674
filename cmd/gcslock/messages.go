package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/gcslock/gcslock"
)

// A message is what the program says of its own, on stderr. Its JSON form is
// documented in the help of --json.
type message struct {
	Time   time.Time `json:"time"`
	Event  string    `json:"event"`
	Text   string    `json:"message"`
	Lock   string    `json:"lock,omitempty"`
	Token  int64     `json:"token,omitempty"`
	Holder *holder   `json:"holder,omitempty"`
}

// The events of messages.
const (
	eventEmulator = "emulator" // which local server is used
	eventWaiting  = "waiting"  // for another holder; once for each one
	eventTakeover = "takeover" // of a stale lock
	eventAcquired = "acquired"
	eventWarning  = "warning" // a request failed and is tried again
	eventLost     = "lost"
	eventReleased = "released"
	eventError    = "error"

	eventRecovered = "recovered" // watch can read again
	eventEmpty     = "empty"     // list has found no locks
)

const jsonHelp = `With --json each message of gcslock's own is one line of JSON on stderr: time,
event (emulator, waiting, takeover, acquired, warning, lost, released or error)
and message; where known lock (the gs:// URL), token (our generation) and holder
(owner, host, pid, operation, since, refreshed, expires, generation, foreign).`

// holder is who holds the lock, in a message.
type holder struct {
	Owner      string    `json:"owner,omitempty"`
	Host       string    `json:"host,omitempty"`
	PID        int       `json:"pid,omitempty"`
	Operation  string    `json:"operation,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Refreshed  time.Time `json:"refreshed,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
	Generation int64     `json:"generation,omitempty"`
	Foreign    bool      `json:"foreign,omitempty"`
}

func holderOf(info gcslock.Info) *holder {
	return &holder{
		Owner: info.Owner, Host: info.Host, PID: info.PID, Operation: info.Operation,
		Since: info.AcquiredAt, Refreshed: info.Updated, Expires: info.ExpiresAt,
		Generation: info.Generation, Foreign: info.Foreign,
	}
}

// A teller writes messages. It is safe for concurrent use.
type teller struct {
	quiet, json bool
	lock        string // the gs:// URL

	// foreign, if set, has words for a holder that the library does not know,
	// and adds to the Info what can be known.
	foreign func(context.Context, *gcslock.Info) string

	mu      sync.Mutex // guards out and waiting
	out     io.Writer
	waiting int64 // the generation of the holder that was told of last
}

// tell writes a message. That stderr can't be written to is nothing to stop
// the work for, and there is nobody else to tell.
func (t *teller) tell(m message) {
	if t.quiet && m.Event != eventError && m.Event != eventLost {
		return
	}
	m.Time, m.Lock = time.Now(), t.lock
	line := []byte("gcslock: " + m.Text + "\n")
	if t.json {
		line, _ = jsonLine(m) // no field of it can fail
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.out.Write(line)
}

// fail tells an error that ends the program, and returns its exit code.
func (t *teller) fail(code int, err error) error {
	t.tell(message{Event: eventError, Text: oneLine(err)})
	return codeError{code}
}

// The messages of the library's log that are of interest here.
const (
	logContended = "locked by another"
	logTookOver  = "took over a stale lock"
	logLost      = "lock lost"
)

// Enabled, Handle, WithAttrs and WithGroup make the teller the handler of the
// library's log. The library sends no request for it; foreign may, once for each
// new holder.
func (t *teller) Enabled(context.Context, slog.Level) bool { return true }

func (t *teller) WithAttrs([]slog.Attr) slog.Handler { return t }

func (t *teller) WithGroup(string) slog.Handler { return t }

func (t *teller) Handle(ctx context.Context, r slog.Record) error {
	var who gcslock.Info
	var reason, failure string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "holder":
			who, _ = a.Value.Any().(gcslock.Info)
		case "reason":
			reason = a.Value.String()
		case "error":
			failure = a.Value.String()
		}
		return true
	})
	switch {
	case r.Message == logContended:
		if t.isNews(who.Generation) {
			text := waitingText(who, time.Now())
			if who.Foreign && t.foreign != nil {
				text = fmt.Sprintf("waiting for %s: held by %s", who.URL(), t.foreign(ctx, &who))
			}
			t.tell(message{Event: eventWaiting, Text: text, Holder: holderOf(who)})
		}
	case r.Message == logTookOver:
		t.tell(message{Event: eventTakeover, Holder: holderOf(who),
			Text: fmt.Sprintf("took over the stale lock of %q (%s)", who.Owner, reason)})
	case r.Message == logLost:
		// Told with what is done about it.
	case r.Level >= slog.LevelWarn:
		t.tell(message{Event: eventWarning, Text: r.Message + ": " + failure})
	}
	return nil
}

// isNews tells whether the holder with this generation is another one than
// that of the last waiting message.
func (t *teller) isNews(generation int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := t.waiting != generation
	t.waiting = generation
	return news
}

// waitingText says who holds the lock, since when and for how long yet.
// Strangers wrote it.
func waitingText(who gcslock.Info, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "waiting for %s", who.URL())
	if who.Foreign {
		fmt.Fprintf(&b, ": held by an object that is no lock of gcslock's and never expires, generation %d", who.Generation)
		return b.String()
	}
	b.WriteString(": held by " + holderOf(who).text())
	if !who.AcquiredAt.IsZero() {
		b.WriteString(", since " + moment(who.AcquiredAt, now))
	}
	if !who.ExpiresAt.IsZero() {
		b.WriteString(", time left: " + timeLeft(who.ExpiresAt, now))
	}
	fmt.Fprintf(&b, ", generation %d", who.Generation)
	return b.String()
}
