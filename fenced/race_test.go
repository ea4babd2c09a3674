//go:build race

package fenced

// Less under the race detector, which makes all of it slow. The heap of a stream is
// the same.
const (
	streamSize       = 128 << 20
	defaultSchedules = 50
)
