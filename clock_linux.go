package gcslock

import (
	"time"

	"golang.org/x/sys/unix"
)

// awakeClock is CLOCK_BOOTTIME, which counts suspended time and no steps of the
// wall clock (clock_gettime(2)). Every kernel that Go supports has it; on the
// failure that cannot happen the monotonic clock alone counts.
func awakeClock(time.Time) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
