package grpctest

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// A network is the client's way to the server.
type network struct {
	listener *bufconn.Listener

	mu    sync.Mutex // guards down and conns
	down  bool
	conns []net.Conn
}

func (n *network) dial(ctx context.Context, _ string) (net.Conn, error) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return nil, errors.New("grpctest: unplugged")
	}
	conn, err := n.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, conn)
	return conn, nil
}

// Unplug breaks the connection, with all calls on it, and refuses new ones. A
// call that the backend has begun with is applied all the same.
func (s *Server) Unplug() {
	n := &s.network
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, conn := range n.conns {
		_ = conn.Close() // of a pipe in memory
	}
	n.conns = nil
}

// Plug lets the client connect again, when it comes to try.
func (s *Server) Plug() {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	s.network.down = false
}
