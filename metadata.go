package gcslock

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"strconv"
	"time"
)

// The keys of the object's custom metadata. owner and expires-at alone are the
// older format, which we read and whose clients read ours.
const (
	keyOwner      = "owner"
	keyExpiresAt  = "expires-at"
	keyTTL        = "ttl"
	keyNonce      = "nonce"
	keyRefresh    = "refresh"
	keyAcquiredAt = "acquired-at"
	keyHost       = "host"
	keyPID        = "pid"
	keyOperation  = "operation"
)

// reserved are the keys that a caller's own metadata can't use.
var reserved = [...]string{
	keyOwner, keyExpiresAt, keyTTL, keyNonce, keyRefresh,
	keyAcquiredAt, keyHost, keyPID, keyOperation,
}

const (
	// metadataLimit is Cloud Storage's limit for an object's custom metadata,
	// names and values together, in bytes
	// (https://cloud.google.com/storage/quotas#objects).
	metadataLimit = 8 << 10

	nonceBytes   = 16
	refreshBytes = 8
)

// randomID is n random bytes in hex.
func randomID(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}

// newMetadata is what a create writes, and after an edit a refresh: a human's edit
// of, say, the ttl is undone before it can mislead a competitor for long.
func (s *settings) newMetadata(own ownAttempt, refresh string, now reading) map[string]string {
	md := maps.Clone(s.metadata)
	if md == nil {
		md = make(map[string]string, len(reserved))
	}
	md[keyOwner] = s.owner
	md[keyTTL] = s.ttl.String()
	md[keyNonce] = own.nonce
	md[keyAcquiredAt] = timestamp(own.sent.wall)
	md[keyHost] = s.host
	md[keyPID] = strconv.Itoa(s.pid)
	if s.operation != "" {
		md[keyOperation] = s.operation
	}
	s.stamp(md, refresh, now)
	return md
}

// stamp renews what changes with every write of the holder.
func (s *settings) stamp(md map[string]string, refresh string, now reading) {
	md[keyExpiresAt] = timestamp(now.wall.Add(s.ttl))
	md[keyRefresh] = refresh
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// parseTimestamp is zero where the text can't be read.
func parseTimestamp(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return presentable(t)
}

// presentable is a time that a stranger's text was read as, in UTC, and zero if
// that has not a year of four digits: time.Parse takes zones and instants that
// the time's own MarshalJSON refuses.
func presentable(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// metadataSize is what Cloud Storage counts against metadataLimit.
func metadataSize(md map[string]string) int {
	n := 0
	for k, v := range md {
		n += len(k) + len(v)
	}
	return n
}

// A record is the metadata as a competitor understands them. Strangers write
// them, and people edit them: whatever can't be read counts as not there, and
// is never a reason to take the lock sooner.
type record struct {
	hasOwner, hasNonce bool
	owner, nonce       string
	refresh            string
	expiresText        string
	expires            time.Time     // zero where it can't be read
	ttl                time.Duration // zero where it can't be read
}

func readRecord(md map[string]string) record {
	r := record{refresh: md[keyRefresh], expiresText: md[keyExpiresAt], expires: parseTimestamp(md[keyExpiresAt])}
	r.owner, r.hasOwner = md[keyOwner]
	r.nonce, r.hasNonce = md[keyNonce]
	if d, err := time.ParseDuration(md[keyTTL]); err == nil && d > 0 {
		// Shorter than New allows was not written by us. Waiting longer than
		// it says is safe.
		r.ttl = min(max(d, minTTL), maxTTL)
	}
	return r
}

// foreign: nobody who knows this protocol wrote the object. A Terraform lock,
// or a file put there by hand.
func (r record) foreign() bool { return !r.hasOwner && !r.hasNonce }
