// Package gcstest is a strict Cloud Storage in memory, for tests.
//
// It is fake-gcs-server (github.com/fsouza/fake-gcs-server, package
// fakestorage) behind a handler that enforces what that ignores: preconditions
// and the generation selector on every operation, with the statuses that Cloud
// Storage gives; a metageneration and a time of update that move; no two
// changes of an object at once. A lock that is wrong fails here, where it
// passes on the stock server.
//
// New makes a Server; Client a storage client that calls it in process, which
// works in a testing/synctest bubble; Listen serves it on loopback. Inject has
// requests fail, by operation, in the ways that a network and a busy service
// have. Put, Edit and Delete change objects behind the client's back, and
// Requests tells what the client has sent.
//
// SelfCheck asks another endpoint, such as a docker container or a real bucket,
// whether it is strict enough for a lock.
//
// It serves the JSON API, and reads in the XML API's style. What it can't serve
// strictly it answers with 501: batches, XML writes, gRPC, notifications,
// ETag preconditions, and preconditions on a copy's source.
package gcstest
