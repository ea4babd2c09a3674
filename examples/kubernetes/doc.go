// Package kubernetes is a CronJob that runs under a lock, see README.md. Its test
// decodes the manifests into Kubernetes' own types; the module is its own so that
// users of the library do not get those.
package kubernetes
