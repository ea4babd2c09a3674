package gcslock

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Info is a snapshot of a lock object, as the server told it. It was true when
// the server answered and may be no more. The texts come from whoever wrote
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

// info describes obj to people, with what is known of the clocks at now.
func (l *Lock) info(obj stored, now reading) Info {
	r := readRecord(obj.metadata)
	info := Info{
		Bucket: l.bucket, Object: l.object,
		Generation: obj.generation, Metageneration: obj.metageneration,
		Owner: r.owner, Host: obj.metadata[keyHost], Operation: obj.metadata[keyOperation],
		TTL: r.ttl, Updated: obj.updated, ExpiresAt: r.expires,
		AcquiredAt: parseTimestamp(obj.metadata[keyAcquiredAt]),
		Metadata:   maps.Clone(obj.metadata),
		Foreign:    r.foreign(),
	}
	if n, err := strconv.Atoi(obj.metadata[keyPID]); err == nil && n > 0 {
		info.PID = n
	}
	info.Stale = l.looksStale(r, obj.updated, now)
	return info
}

// Inspect tells who holds the lock, in one read request (up to three where it
// fails). [ErrNotHeld] if nobody does. It is safe for concurrent use and works
// while this or any other process holds the lock.
func (l *Lock) Inspect(ctx context.Context) (*Info, error) {
	if l.invalid != nil {
		return nil, l.invalid
	}
	r, err := l.readPatiently(ctx)
	if err != nil {
		return nil, fmt.Errorf("gcslock: inspect: %w", err)
	}
	if r.outcome == absent {
		return nil, l.free()
	}
	info := l.info(r.object, l.clock.now())
	return &info, nil
}

// Break deletes the lock object if it still has this generation, which is the
// token that [Info], [HeldError] and the command print, whatever its
// metageneration: a holder that goes on refreshing does not get in the way.
// [ErrNotHeld] if there is no object, a [*HeldError] if another generation
// holds the lock.
//
// Breaking a live lock lets a second holder in before the first one learns of
// it, with its next refresh. Costs a read and a delete.
func (l *Lock) Break(ctx context.Context, generation int64) error {
	if l.invalid != nil {
		return l.invalid
	}
	if generation <= 0 {
		return fmt.Errorf("gcslock: break %s: %d is no generation", l.url, generation)
	}
	ctx, cancel := context.WithTimeout(ctx, breakLimit)
	defer cancel()
	asked := false // one of our deletes may have been applied
	pause := l.retryPause()
	for {
		r, err := l.readPatiently(ctx)
		if err != nil {
			return fmt.Errorf("gcslock: break: %w", err)
		}
		if r.outcome == absent || r.object.generation != generation {
			if asked {
				return nil // gone, as was wanted, and most likely by us
			}
			if r.outcome == absent {
				return l.free()
			}
			return &HeldError{Holder: l.info(r.object, l.clock.now())}
		}
		r = l.remove(ctx, r.object.version)
		switch r.outcome {
		case done:
			l.log(ctx, levelWarn, "lock broken", generation)
			return nil
		case permanent:
			return fmt.Errorf("gcslock: break: %w", r.err)
		case unknown:
			asked = true
		}
		// After a mismatch, too: a holder that refreshed in between does so a
		// few times a minute, and this is tried more often than that.
		if sleep(ctx, pause.next()) != nil {
			return fmt.Errorf("gcslock: break: %w; last failure: %w", ctx.Err(), r.err)
		}
	}
}

// breakLimit bounds a Break in all, where its context does not.
const breakLimit = 15 * time.Second

// readPatiently reads with up to three attempts. Its reply is done or absent.
func (l *Lock) readPatiently(ctx context.Context) (reply, error) {
	pause := l.retryPause()
	for attempt := 1; ; attempt++ {
		r := l.read(ctx)
		if r.outcome == done || r.outcome == absent {
			return r, nil
		}
		if ctx.Err() != nil {
			return r, fmt.Errorf("%w; last failure: %w", ctx.Err(), r.err)
		}
		if r.outcome == permanent || attempt == tryAttempts {
			return r, r.err
		}
		_ = sleep(ctx, pause.next()) // the next read sees the end of ctx
	}
}

// free is ErrNotHeld for this object.
func (l *Lock) free() error {
	return fmt.Errorf("%w: %s does not exist, the lock is free", ErrNotHeld, l.url)
}
