//go:build race

package preflight

// stride: with the race detector every fifth request fails, which is each kind.
const stride = 5
