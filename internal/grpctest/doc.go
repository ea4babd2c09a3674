// Package grpctest serves a gcstest server over gRPC, so that what holds over
// HTTP can be tried through storage.NewGRPCClient, too.
//
// It has the few methods of google.storage.v2.Storage that a lock uses, and
// translates each call into one request of the JSON API. So the preconditions,
// the versions, the faults and the log of requests are gcstest's, and only the
// wire differs. What gRPC does not carry is left out: no reply tells the
// server's Date.
//
// The service is written by hand over the messages of the global registry. The
// storage client keeps its generated package to itself (it is internal), and
// google.golang.org/genproto/googleapis/storage/v2, the public one, registers the
// same file under the same name: a program with both of them panics at its start.
package grpctest
