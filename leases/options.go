package leases

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/gcslock/gcslock"
)

// An Option changes a setting of a manager. The functions named With… make
// them.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// settings are what the options left. They do not change after NewManager.
type settings struct {
	logger    *slog.Logger
	observers []gcslock.Observer
	watch     time.Duration // 0: quick looks for a while, then one in a RenewInterval
}

// WithLogger sets where to log; the default is [slog.Default], because errors
// have no other way out. Each line has the attribute worker; those of this
// package also owner, the holder id, and lease, the lock object's gs:// name.
// What the lock logs, see [gcslock.WithLogger], goes there, too.
func WithLogger(logger *slog.Logger) Option {
	return optionFunc(func(s *settings) { s.logger = logger })
}

// WithObserver has o told of what happens to the workers' locks, see
// [gcslock.WithObserver]. It can be given several times.
func WithObserver(o gcslock.Observer) Option {
	return optionFunc(func(s *settings) { s.observers = append(s.observers, o) })
}

// WithWatchInterval has followers look this often, always, up to a tenth later
// at random: a worker that is released starts elsewhere within that time, at
// the price of a read request each. The default is every second in the first
// two minutes of a Run and after each change of the leader, and once in a
// RenewInterval else; 0 is that, too. More than a RenewInterval counts as one, and
// less than 100 ms as 100 ms.
func WithWatchInterval(d time.Duration) Option {
	return optionFunc(func(s *settings) {
		if s.watch = 0; d > 0 {
			s.watch = max(d, shortestPause)
		}
	})
}

func newSettings(opts []Option) (settings, error) {
	var s settings
	for _, o := range opts {
		if o == nil {
			return s, errors.New("an option is nil")
		}
		o.apply(&s)
	}
	if slices.Contains(s.observers, nil) {
		return s, errors.New("observer is nil")
	}
	return s, nil
}
