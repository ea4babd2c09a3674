//go:build !race

package preflight

const stride = 1
