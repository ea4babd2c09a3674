//go:build !race

package gcstest_test

const raceDetector = false
