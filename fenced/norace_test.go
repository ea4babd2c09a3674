//go:build !race

package fenced

const streamSize = 1 << 30
