package gcslock

import (
	"context"
	"fmt"
	"time"
)

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
