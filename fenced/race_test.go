//go:build race

package fenced

// streamSize is less under the race detector, which makes checksums slow. The heap
// is the same.
const streamSize = 128 << 20
