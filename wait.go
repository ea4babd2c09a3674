package gcslock

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff gives pauses of decorrelated jitter: each is drawn from the
// shortest one to three times the last, so that a herd that came together does
// not stay together
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
type backoff struct {
	random                  source
	shortest, longest, last time.Duration
}

// A source of chance gives durations from 0 to below n.
type source func(n time.Duration) time.Duration

// chance is the source of every lock that is not simulated.
func chance(n time.Duration) time.Duration { return rand.N(n) }

// retryPause is for requests that failed for now: up to the second that Cloud
// Storage asks for between two changes of one object.
func (l *Lock) retryPause() backoff {
	return backoff{random: l.random, shortest: defaultMinWait, longest: defaultMaxWait}
}

func (b *backoff) next() time.Duration {
	upper := min(max(3*b.last, b.shortest), b.longest)
	b.last = b.shortest + b.random(upper-b.shortest+1)
	return b.last
}

// sleep waits for d or until ctx ends, and returns ctx's error then.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
