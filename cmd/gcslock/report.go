package main

import (
	"maps"
	"math"
	"strconv"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
	"github.com/gcslock/gcslock/internal/inside"
	"github.com/gcslock/gcslock/internal/shell"
)

// The states of a lock.
const (
	stateFree    = "free"
	stateLive    = "live"    // refreshed in time, as far as the server's clock is known
	stateStale   = "stale"   // past its time: the next one to acquire it takes it over
	stateForeign = "foreign" // not written by a client of the protocol: never expires
	stateUnknown = "unknown" // no reply told the server's time
)

// A report is what status, list, watch and break tell of a lock. Its JSON form
// is documented in docs/cli.md, and its fields are there to stay.
type report struct {
	Lock         string              `json:"lock"`
	State        string              `json:"state"`
	ServerTime   time.Time           `json:"server_time,omitzero"`
	*holder                          // nil where the lock is free
	TTLSeconds   float64             `json:"ttl_seconds,omitempty"`
	StaleAfter   time.Time           `json:"stale_after,omitzero"`
	LeftSeconds  *int64              `json:"left_seconds,omitempty"`
	PayloadBytes int64               `json:"payload_bytes,omitempty"`
	PayloadType  string              `json:"payload_type,omitempty"`
	Metadata     map[string]string   `json:"metadata,omitempty"`
	Terraform    *terraform.LockInfo `json:"terraform,omitempty"`
	BreakCommand string              `json:"break_command,omitempty"`
	Removed      *bool               `json:"removed,omitempty"` // break's

	url string // safe to print, as Lock is not
	now time.Time
}

// judge is the state of a held lock by the server's time, never by the local
// clock: one that is wrong would have somebody break a live lock. A lock that
// may be live within what is known of that time is.
func judge(info *gcslock.Info, server *serverTime, now time.Time) string {
	offset, within, known := server.offset()
	switch {
	case info.Foreign:
		return stateForeign
	case info.StaleAfter.IsZero():
		return stateLive
	case !known:
		return stateUnknown
	case now.Add(offset - within).After(info.StaleAfter):
		return stateStale
	}
	return stateLive
}

// freeReport is that of a lock whose object does not exist.
func (l *looker) freeReport() report {
	r := report{Lock: l.name(l.object), State: stateFree, url: l.lock, now: l.server.now()}
	if _, _, known := l.server.offset(); known {
		r.ServerTime = r.now.UTC().Truncate(time.Millisecond)
	}
	return r
}

// reportOf is that of the object with these attributes.
func (l *looker) reportOf(attrs *storage.ObjectAttrs) report {
	info := gcslock.InfoFrom(attrs)
	r := l.reportOn(info)
	if r.Since.IsZero() {
		r.Since = attrs.Created
	}
	if r.PayloadBytes = attrs.Size; attrs.Size > 0 {
		r.PayloadType = attrs.ContentType
	}
	return r
}

// reportOn is the part of it that the library's own Info knows.
func (l *looker) reportOn(info *gcslock.Info) report {
	now := time.Now()
	r := report{
		Lock: l.name(info.Object), State: judge(info, l.server, now), url: inside.URL(l.bucket, info.Object),
		holder: holderOf(*info), TTLSeconds: info.TTL.Seconds(), StaleAfter: info.StaleAfter,
		Metadata: othersMetadata(info), BreakCommand: l.breakCommand(info), now: now,
	}
	if offset, _, known := l.server.offset(); known {
		r.now = now.Add(offset)
		r.ServerTime = r.now.UTC().Truncate(time.Millisecond)
		if !r.StaleAfter.IsZero() {
			left := int64(math.Floor(r.StaleAfter.Sub(r.now).Seconds()))
			r.LeftSeconds = &left
		}
	}
	return r
}

// othersMetadata is what the object carries beside the lock's own.
func othersMetadata(info *gcslock.Info) map[string]string {
	md := maps.Clone(info.Metadata)
	if !info.Foreign {
		for _, key := range inside.Reserved {
			delete(md, key)
		}
	}
	return md
}

// breakCommand is the command line that removes this holder's object, and no
// other's.
func (l *looker) breakCommand(info *gcslock.Info) string {
	command := "gcslock break " + shell.Word(l.name(info.Object)) + " --id " + strconv.FormatInt(info.Generation, 10)
	if l.emulator {
		command += " --emulator"
	}
	return command
}

// held tells whether there is an object.
func (r *report) held() bool { return r.holder != nil }
