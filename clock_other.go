//go:build !linux

package gcslock

import "time"

// awakeClock is the wall clock, the only clock that surely goes on in suspend.
// Set forward it ends a lease early, which is safe; set back it says less than
// the monotonic clock, which then counts.
func awakeClock(now time.Time) time.Duration {
	return time.Duration(now.UnixNano())
}
