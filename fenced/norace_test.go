//go:build !race

package fenced

const (
	streamSize       = 1 << 30
	defaultSchedules = 200
)
