package gcstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// Listener is a Server on a loopback socket. Make one with Server.Listen.
type Listener struct {
	listener net.Listener
	http     *http.Server
	cancel   context.CancelFunc
	served   chan struct{}  // closed when Serve has returned
	conns    sync.WaitGroup // open connections, each with a goroutine
	close    func() error
}

// Listen serves on a loopback address, for example "127.0.0.1:0" for a port
// that is free. It refuses others, among them an empty host, which is all of
// the machine's: the server knows no credentials. The caller closes the
// listener. A server can have several. Not for synctest bubbles, which a socket
// holds up.
func (s *Server) Listen(addr string) (*Listener, error) {
	host, err := loopback(addr)
	if err != nil {
		return nil, err
	}
	socket, err := net.Listen("tcp", host)
	if err != nil {
		return nil, fmt.Errorf("gcstest: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Listener{listener: socket, cancel: cancel, served: make(chan struct{})}
	l.http = &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         l.count,
		ReadHeaderTimeout: 10 * time.Second,
	}
	l.close = sync.OnceValue(l.shut)
	go func() {
		defer close(l.served)
		_ = l.http.Serve(socket) // ErrServerClosed: Close is its only end
	}()
	return l, nil
}

// loopback returns the address with its host resolved, and refuses one that
// other machines can reach.
func loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("gcstest: listening address %q: %w", addr, err)
	}
	if host == "localhost" {
		host = "127.0.0.1" // not looked up, because that may lead elsewhere
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf("gcstest: listening address %q is not a loopback address: use 127.0.0.1:PORT, [::1]:PORT or localhost:PORT", addr)
	}
	return net.JoinHostPort(host, port), nil
}

// count keeps track of connections. The first state comes in Serve's goroutine,
// which Close waits for before it waits for the rest.
func (l *Listener) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		l.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		l.conns.Done()
	}
}

// Addr is the address that it listens on.
func (l *Listener) Addr() net.Addr { return l.listener.Addr() }

// URL is the server's root, for example "http://127.0.0.1:40123".
func (l *Listener) URL() string { return "http://" + l.Addr().String() }

// EmulatorHost is the value for the environment variable STORAGE_EMULATOR_HOST,
// which leads Google's client libraries here.
func (l *Listener) EmulatorHost() string { return l.Addr().String() }

// Client returns a storage client that uses the listener, without credentials,
// whatever the environment says. Options are added to the client's. Its
// connections end with the listener.
func (l *Listener) Client(ctx context.Context, opts ...option.ClientOption) (*storage.Client, error) {
	transport := &http.Transport{Proxy: nil}
	return newClient(ctx, transport, l.URL()+"/storage/v1/", opts)
}

// Close stops listening, ends the requests that hang, cuts all connections, and
// waits for their goroutines. Further calls return the first one's result.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) shut() error {
	l.cancel()
	err := l.http.Close()
	<-l.served
	l.conns.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("gcstest: %w", err)
	}
	return nil
}
