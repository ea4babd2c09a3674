package leases

import (
	"fmt"
	"time"
)

// A State is what a worker does on this instance.
type State string

// The states of a worker.
const (
	// Following: another instance runs it, or nobody yet. The worker waits for
	// its lease, or after a failure for its time to try again.
	Following State = "following"

	// Leading: this instance holds the lease and runs the worker.
	Leading State = "leading"

	// Stopping: the worker's context is cancelled, or its function has
	// returned, and the lease is not given up yet. It is kept alive until the
	// function has returned. A worker that stays here ignores its context.
	Stopping State = "stopping"

	// Lost: the lease is lost, and the worker's function has not returned,
	// although its context is cancelled. Another instance may run it, too. A
	// worker that stays here ignores its context: end the process.
	Lost State = "lost"

	// Stopped: its Run has ended, or was refused, as LastError tells.
	Stopped State = "stopped"
)

// A Status is a snapshot of one worker on this instance, by what the instance
// knows; it asks nothing of storage. It has JSON names, for a health endpoint.
type Status struct {
	Name  string    `json:"name"`
	State State     `json:"state"`
	Since time.Time `json:"since"` // of the state

	// Token is the lease's token, see [Token]; 0 where this instance has none.
	Token int64 `json:"token,omitempty"`

	// Object is the gs:// name of the lock object; empty where the manager is
	// not enabled.
	Object string `json:"object,omitempty"`

	// Holder is the holder id of the leader, as a follower's last look showed
	// it, and HolderSeen when that was: long ago if storage is out of reach.
	Holder     string    `json:"holder,omitempty"`
	HolderSeen time.Time `json:"holderSeen,omitzero"`

	// LastError is what went wrong last, and LastErrorAt when; it stays when the
	// worker goes on.
	LastError   string    `json:"lastError,omitempty"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
}

// Status tells of each worker, by name, what it does on this instance. A worker
// that has stopped is told of until its name is run again.
func (m *Manager) Status() []Status {
	all := m.all()
	status := make([]Status, len(all))
	for i, w := range all {
		status[i] = w.status()
	}
	return status
}

// describe tells people about a worker that has not stopped.
func (s Status) describe() string {
	object, consequence := s.Object, "and its lease is kept alive"
	if object == "" {
		object, consequence = "without a lease", "and end the process if it never will"
	}
	text := fmt.Sprintf("%s, %s since %s", object, s.State, s.Since.UTC().Format(time.RFC3339))
	switch s.State {
	case Stopping:
		return text + ": its function has not returned, " + consequence
	case Lost:
		return text + ": its function has not returned, and another instance may run it, too"
	}
	return text
}
