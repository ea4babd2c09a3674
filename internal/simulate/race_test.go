//go:build race

package main

// The race detector makes a schedule ten times as dear.
const defaultSchedules, seedsRunTwice = 100, 20
