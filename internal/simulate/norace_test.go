//go:build !race

package main

const defaultSchedules, seedsRunTwice = 2000, 200
