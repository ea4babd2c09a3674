package leases

import "time"

const (
	// DefaultTTL is the ttl where Config has none or one that is unusable.
	DefaultTTL = 60 * time.Second

	// DefaultRenewInterval is the interval where Config has none.
	DefaultRenewInterval = 20 * time.Second
)

// The limits of package gcslock, and Cloud Storage's one change a second of an
// object.
const (
	minTTL      = 3 * time.Second
	maxTTL      = 24 * time.Hour
	minInterval = time.Second
)

// A Config says whether and how the workers are kept on one instance.
type Config struct {
	// Enabled: false has Run call the worker directly, without any access to
	// storage, for local development.
	Enabled bool

	// TTL is how long a worker's lease outlives its last renewal: after a crash
	// the worker pauses for about that long. From 3 s to 24 h; unset or
	// unusable it is 60 s.
	TTL time.Duration

	// RenewInterval is how often a lease is renewed, up to a tenth earlier; the
	// pause before a worker that failed runs again; and the longest pause
	// between a follower's looks. From 1 s to under half of the TTL. Unset it
	// is 20 s, unless that is unusable; unusable it is a third of the TTL.
	RenewInterval time.Duration
}

// usable is the configuration with what is unset or unusable replaced.
func (c Config) usable() Config {
	if c.TTL < minTTL || c.TTL > maxTTL {
		c.TTL = DefaultTTL
	}
	if c.RenewInterval == 0 {
		c.RenewInterval = DefaultRenewInterval
	}
	if c.RenewInterval < minInterval || c.RenewInterval*2 >= c.TTL {
		c.RenewInterval = c.TTL / 3
	}
	return c
}
