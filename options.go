package gcslock

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// DefaultTTL is how long a lock outlives its last refresh, unless
	// [WithTTL] says otherwise.
	DefaultTTL = time.Minute

	minTTL = 3 * time.Second
	maxTTL = 24 * time.Hour

	defaultMinWait = 100 * time.Millisecond
	defaultMaxWait = time.Second
)

// An Option changes a setting of a lock. The functions named With… make them.
// They are checked together by [New].
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// settings are what the options left. They do not change after New.
type settings struct {
	ttl             time.Duration
	refreshInterval time.Duration // 0: a third of the ttl
	minWait         time.Duration
	maxWait         time.Duration
	standby         func(holder Info) time.Duration // valid if standsBy
	standsBy        bool
	waitLimit       time.Duration // valid if limitWait
	limitWait       bool
	maxHold         time.Duration // valid if limitHold
	limitHold       bool
	maxFailures     int // valid if countFailures
	countFailures   bool
	manual          bool
	mostHandoffs    int           // valid if handsOff
	handoffTime     time.Duration // the same
	handsOff        bool
	reclaim         bool

	owner       string
	host        string
	pid         int
	operation   string
	metadata    map[string]string
	contentType string
	payload     []byte
	logger      *slog.Logger
	observers   []Observer
}

// WithTTL sets how long the lock outlives its holder's last refresh: after a
// crash others wait about that long. From 3 s to 24 h; the default is 60 s. The
// lease itself is valid for nine tenths of it after the last refresh.
func WithTTL(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.ttl = d })
}

// WithOwner sets the label that tells people who holds the lock; the default
// is HOST/PID. It is no identity: two leases may carry the same label, unless
// [WithReclaim] makes it one.
func WithOwner(label string) Option {
	return optionFunc(func(s *settings) { s.owner = label })
}

// WithOperation says what the lock is held for, to people.
func WithOperation(text string) Option {
	return optionFunc(func(s *settings) { s.operation = text })
}

// WithMetadata adds custom metadata to the lock object, for people and for
// other programs. The names of the protocol's own keys are refused. All
// metadata of the object, names and values, have 8 KiB together.
func WithMetadata(md map[string]string) Option {
	md = maps.Clone(md)
	return optionFunc(func(s *settings) { s.metadata = md })
}

// WithPayload sets the content of the lock object, such as Terraform's lock
// information, and its media type. The default is an empty object.
func WithPayload(contentType string, body []byte) Option {
	body = slices.Clone(body)
	return optionFunc(func(s *settings) { s.contentType, s.payload = contentType, body })
}

// WithRefreshInterval sets how often the lease is refreshed, under half of the
// ttl; the default is a third of it. The actual pauses are up to a tenth
// shorter, at random, and the first is from a fifth of the interval to all of it,
// so that leases taken together do not refresh together. A lease that is held
// for less than a fifth of the interval, 4 s by default, is never refreshed.
func WithRefreshInterval(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.refreshInterval = d })
}

// WithMaxRefreshFailures gives the lease up after more than n failed refreshes
// in a row, before its validity ends. A refresh is one call of
// [Lease.Refresh], or one turn of the automatic refresher with all its
// attempts. Off by default: the validity alone decides.
func WithMaxRefreshFailures(n int) Option {
	return optionFunc(func(s *settings) { s.maxFailures, s.countFailures = n, true })
}

// WithManualRefresh starts no refresher: the caller calls [Lease.Refresh] in
// time. The lease still ends by itself when its validity does.
func WithManualRefresh() Option {
	return optionFunc(func(s *settings) { s.manual = true })
}

// WithReclaim takes over at once, without waiting for its ttl, a lock object
// whose owner label is exactly ours: a restarted job need not wait for its
// own leftover. Only for labels that no two live processes share; the other
// one's lease would be lost. What the same [Lock] holds or is about to hold is no
// leftover, and is waited for; [Lock.Lock] replaces its own.
func WithReclaim() Option {
	return optionFunc(func(s *settings) { s.reclaim = true })
}

// WithWait sets the shortest and the longest pause between two looks at a held
// lock; the default is 100 ms to 1 s. A look is one read request. The pauses are
// short while the lock changes hands, and about a quarter of the time for which the
// same holder has been seen, or the one before it was: with the defaults they are the
// longest after 4 s.
//
// For half a minute after Cloud Storage has refused a change of the object for coming
// too soon after another (429), looks are 2 to 6 s apart, the more the more others
// were met, or the shortest pause if that is more: the lock changes hands once in 2 s
// then, at the most.
func WithWait(shortest, longest time.Duration) Option {
	return optionFunc(func(s *settings) { s.minWait, s.maxWait = shortest, longest })
}

// WithStandby is for a waiter that may stand by for days: it sends no upload
// while the holder refreshes, and chooses its own pauses. Acquire and Do then
// look before their first create, and after each look at a held lock they pause
// for as long as pause says of its holder, but not for less than the shortest
// pause of [WithWait], and not beyond the time at which the lock may turn out to
// be stale. The pauses after a request that failed are those of WithWait. pause
// is called by the goroutine that waits.
//
// A holder that has not been seen to refresh for half of its ttl is taken for
// dead in so far that one create is sent: its refusal tells the server's time,
// which a read does not.
//
// An uncontended acquisition is a read and a write request then.
func WithStandby(pause func(holder Info) time.Duration) Option {
	return optionFunc(func(s *settings) { s.standby, s.standsBy = pause, true })
}

// WithMaxWait limits how long Acquire and Do wait, beside their context. The
// error then is [ErrLocked] and [context.DeadlineExceeded].
func WithMaxWait(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.waitLimit, s.limitWait = d, true })
}

// WithMaxHold gives a lease up this long after Acquire has returned it, refreshed
// or not, against work that hangs under a healthy refresher. The context is
// cancelled with a cause that is [ErrLockAbandoned]; the object stays until
// the holder releases, or until its ttl is over.
func WithMaxHold(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.maxHold, s.limitHold = d, true })
}

// WithLogger sets where to log; by default nothing is logged. Contention is
// logged at Debug, acquisition and release at Info, failed refreshes, takeover
// and loss at Warn, each with the attributes bucket, object, owner and
// generation. Lines about somebody else's lock, "locked by another" at each
// look among them, have a holder, too: an [Info].
func WithLogger(logger *slog.Logger) Option {
	return optionFunc(func(s *settings) { s.logger = logger })
}

func newSettings(opts []Option) (settings, error) {
	host, _ := os.Hostname() // empty where the system does not know
	s := settings{
		ttl:     DefaultTTL,
		minWait: defaultMinWait,
		maxWait: defaultMaxWait,
		host:    host,
		pid:     os.Getpid(),
	}
	s.owner = fmt.Sprintf("%s/%d", s.host, s.pid)
	for _, o := range opts {
		if o == nil {
			return s, errors.New("an option is nil")
		}
		o.apply(&s)
	}
	if s.refreshInterval == 0 {
		s.refreshInterval = s.ttl / 3
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s, errors.Join(s.checkTimes(), s.checkTexts(), s.checkObservers())
}

// checkTimes checks the durations against each other and against the limits.
func (s *settings) checkTimes() error {
	var bad problems
	if s.ttl < minTTL || s.ttl > maxTTL {
		bad.addf("ttl %v is not from %v to %v", s.ttl, minTTL, maxTTL)
	}
	if s.refreshInterval < 0 || s.refreshInterval*2 >= s.ttl {
		bad.addf("refresh interval %v is not positive and under half of the ttl %v", s.refreshInterval, s.ttl)
	}
	if s.minWait <= 0 || s.maxWait < s.minWait {
		bad.addf("pauses of %v to %v between looks are not positive and in this order", s.minWait, s.maxWait)
	}
	if s.standsBy && s.standby == nil {
		bad.addf("function of WithStandby is nil")
	}
	s.checkHandoff(&bad)
	if s.limitWait && s.waitLimit <= 0 {
		bad.addf("longest wait %v is not positive (TryAcquire does not wait)", s.waitLimit)
	}
	if s.limitHold && s.maxHold <= 0 {
		bad.addf("longest hold %v is not positive", s.maxHold)
	}
	if s.countFailures && s.maxFailures < 0 {
		bad.addf("number of failed refreshes %d is negative", s.maxFailures)
	}
	return bad.err()
}

// checkTexts checks what goes into the object's metadata.
func (s *settings) checkTexts() error {
	var bad problems
	if s.owner == "" {
		bad.addf("owner label is empty")
	}
	for k, v := range s.metadata {
		switch {
		case k == "":
			bad.addf("a metadata key is empty")
		case slices.Contains(reserved[:], strings.ToLower(k)):
			bad.addf("metadata key %q belongs to the protocol", k)
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			bad.addf("metadata %q: %q is not UTF-8", k, v)
		}
	}
	if !utf8.ValidString(s.owner) || !utf8.ValidString(s.operation) {
		bad.addf("owner %q or operation %q is not UTF-8", s.owner, s.operation)
	}
	longest := reading{wall: time.Unix(0, 999999999)}
	md := s.newMetadata(ownAttempt{strings.Repeat("0", 2*nonceBytes), longest}, strings.Repeat("0", 2*refreshBytes), longest)
	if n := metadataSize(md); n > metadataLimit {
		bad.addf("metadata of %d bytes are over Cloud Storage's limit of %d", n, metadataLimit)
	}
	return bad.err()
}

// problems collects all that is wrong with the input, so that it is put right
// in one go.
type problems []error

func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }
func (p problems) err() error                       { return errors.Join(p...) }

// checkName applies Cloud Storage's rules for object names
// (https://cloud.google.com/storage/docs/objects#naming).
func checkName(object string) error {
	switch {
	case object == "":
		return errors.New("object name is empty")
	case len(object) > 1024:
		return fmt.Errorf("object name has %d bytes, Cloud Storage allows 1024", len(object))
	case !utf8.ValidString(object):
		return fmt.Errorf("object name %q is not UTF-8", object)
	case strings.ContainsAny(object, "\r\n"):
		return fmt.Errorf("object name %q contains a line break", object)
	case object == "." || object == ".." || strings.HasPrefix(object, ".well-known/acme-challenge/"):
		return fmt.Errorf("object name %q is refused by Cloud Storage", object)
	}
	return nil
}
