package gcslock

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
)

// Info is a snapshot of a lock object, as the server told it; of a lease of the same
// [Lock] that keeps a waiter out, as that lease has it, with the local clock in place of
// the server's. It was true when the server answered and may be no more. The texts come from whoever wrote
// the object: quote them before they reach a terminal.
type Info struct {
	Bucket, Object             string
	Generation, Metageneration int64 // Generation is the lease's token
	Owner, Host, Operation     string
	PID                        int               // 0 where not known
	TTL                        time.Duration     // as judged, from 3 s to 24 h; 0 where not known
	AcquiredAt                 time.Time         // by the holder's clock; zero where not known
	Updated                    time.Time         // by the server's clock: the last refresh
	ExpiresAt                  time.Time         // by the holder's clock; zero where not known
	StaleAfter                 time.Time         // by the server's clock: when others may take the lock unless it is refreshed; zero: never
	Metadata                   map[string]string // all of it

	// Foreign: not written by a client of this protocol. It counts as held and
	// is never removed automatically.
	Foreign bool
	// Stale: past its time by the server's clock as far as that is known, else
	// by ExpiresAt and the local clock. A hint for people, never a licence to
	// delete.
	Stale bool
}

// URL is the object's gs:// name, safe to print.
func (i *Info) URL() string { return objectURL(i.Bucket, i.Object) }

// describe is the part of an error message that tells who holds the lock.
func (i *Info) describe() string {
	if i.Generation == 0 {
		return ", by a holder that could not be read"
	}
	var b strings.Builder
	switch {
	case i.Foreign:
		b.WriteString(" by an object that is no lock of this library and never expires")
	default:
		fmt.Fprintf(&b, " by %q", i.Owner)
	}
	for _, text := range []struct{ name, value string }{{"host", i.Host}, {"operation", i.Operation}} {
		if text.value != "" {
			fmt.Fprintf(&b, ", %s %q", text.name, text.value)
		}
	}
	if i.PID != 0 {
		fmt.Fprintf(&b, ", pid %d", i.PID)
	}
	for _, at := range []struct {
		name  string
		value time.Time
	}{{"since", i.AcquiredAt}, {"last refresh", i.Updated}, {"expires", i.ExpiresAt}} {
		if !at.value.IsZero() {
			fmt.Fprintf(&b, ", %s %s", at.name, at.value.UTC().Format(time.RFC3339))
		}
	}
	fmt.Fprintf(&b, ", generation %d", i.Generation)
	if i.Stale {
		b.WriteString(", looks stale")
	}
	return b.String()
}

// InfoFrom is the [Info] of an object whose attributes were read by other means,
// from a listing for example. It sends no request. The server's clock is not
// known here: Stale is by ExpiresAt and the local clock, and whoever knows the
// server's time better compares it with StaleAfter.
func InfoFrom(attrs *storage.ObjectAttrs) *Info {
	w := watch{server: new(serverClock), ownTTL: DefaultTTL}
	now := newSystemClock().now()
	w.see(stored{
		version:  version{attrs.Generation, attrs.Metageneration},
		metadata: attrs.Metadata, updated: attrs.Updated,
	}, now)
	info := w.info(now)
	info.Bucket, info.Object = attrs.Bucket, attrs.Name
	return &info
}

// info describes obj to people, with what is known of the clocks at now.
func (l *Lock) info(obj stored, now reading) Info {
	w := watch{server: &l.server, ownTTL: l.ttl}
	w.see(obj, now)
	info := w.info(now)
	info.Bucket, info.Object = l.bucket, l.object
	return info
}

// info is what one look at the object tells.
func (w *watch) info(now reading) Info {
	obj, r := w.object, w.record
	info := Info{
		Generation: obj.generation, Metageneration: obj.metageneration,
		Owner: r.owner, Host: obj.metadata[keyHost], Operation: obj.metadata[keyOperation],
		TTL: r.ttl, Updated: obj.updated, ExpiresAt: r.expires,
		AcquiredAt: parseTimestamp(obj.metadata[keyAcquiredAt]),
		StaleAfter: presentable(w.end()),
		Metadata:   maps.Clone(obj.metadata),
		Foreign:    r.foreign(),
	}
	if n, err := strconv.Atoi(obj.metadata[keyPID]); err == nil && n > 0 {
		info.PID = n
	}
	switch {
	case r.foreign():
	case !w.serverNow(now).IsZero():
		info.Stale = w.judge(now).stale
	default:
		info.Stale = !r.expires.IsZero() && now.wall.After(r.expires)
	}
	return info
}
