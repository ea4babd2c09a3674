// Package gcslock is a distributed lock for programs that have a Cloud Storage
// bucket and nothing else.
package gcslock
