package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A proxy is the network between one worker and the server, on loopback. Each
// connection has a fate of its own, and all of them can be cut off for a while:
// what is under way then arrives later.
type proxy struct {
	listener net.Listener
	server   func() string // its address; empty while it is down

	fates    func(*rand.Rand) fate
	cutUntil atomic.Pointer[time.Time]
	calm     atomic.Bool // no more trouble
	tally    *tally

	mu     sync.Mutex // guards the rest
	chance *rand.Rand
	open   map[net.Conn]bool
	closed bool
	conns  sync.WaitGroup
}

// tally counts over all proxies.
type tally struct{ connections, resets, stalls atomic.Int64 }

func newProxy(server func() string, fates func(*rand.Rand) fate, seed uint64, tally *tally) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{
		listener: listener, server: server, fates: fates, tally: tally,
		chance: rand.New(rand.NewPCG(seed, 1)), open: map[net.Conn]bool{},
	}
	p.conns.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// cut holds everything up for so long.
func (p *proxy) cut(d time.Duration) {
	until := time.Now().Add(d)
	p.cutUntil.Store(&until)
}

// close ends all connections and waits for their goroutines.
func (p *proxy) close() {
	p.calm.Store(true)
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.conns.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		if p.keep(client) {
			p.conns.Go(func() { p.carry(client) })
		}
	}
}

// keep remembers a connection to be closed with the proxy; false: it is closed
// already.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// A fate is what happens to a connection.
type fate struct {
	latency time.Duration // at most, of each piece in either direction
	// After so many bytes of the requests or the replies, -1 for never, the
	// connection is reset: a request arrives in part or not at all, or its
	// reply does.
	resetRequest, resetReply int
	// After so many bytes of the replies they are held up for so long.
	stallReply int
	stall      time.Duration
	// The server's side outlives the client's by so long: what the client has
	// sent before it went away arrives, late, and is carried out. (The server
	// drops a request whose connection has gone.)
	linger time.Duration
}

func (p *proxy) fate() fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fates(p.chance)
}

// anyFate leaves about a third of the connections alone.
func anyFate(r *rand.Rand) fate {
	f := fate{resetRequest: -1, resetReply: -1, stallReply: -1, linger: time.Second}
	switch n := r.IntN(10); {
	case n < 3:
		f.latency = 150 * time.Millisecond
	case n < 4:
		f.latency = time.Second // a write has less than that, with a short ttl
	default:
		f.latency = 3 * time.Millisecond
	}
	switch n := r.IntN(10); {
	case n < 1:
		f.resetRequest = r.IntN(6000)
	case n < 4:
		f.resetReply = r.IntN(12000)
	case n < 5:
		f.stallReply, f.stall = r.IntN(12000), time.Duration(r.IntN(5000))*time.Millisecond
	}
	return f
}

func (p *proxy) random(d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.chance.Int64N(int64(d)))
}

// carry is one connection, from its first byte to its end.
func (p *proxy) carry(client net.Conn) {
	defer p.drop(client)
	p.tally.connections.Add(1)
	f := p.fate()
	server, err := net.Dial("tcp", p.server())
	if err != nil {
		reset(client) // as a machine does where nothing listens
		return
	}
	if !p.keep(server) {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		p.pump(client, server, f.latency, f.resetReply, f.stallReply, f.stall)
		reset(client)
	})
	p.pump(server, client, f.latency, f.resetRequest, -1, 0)
	reset(client)
	p.sleep(f.linger)
	p.drop(server)
	answers.Wait()
}

var errReset = errors.New("reset")

// pump carries one direction until it ends, or is to be reset.
func (p *proxy) pump(to io.Writer, from io.Reader, latency time.Duration, resetAt, stallAt int, stall time.Duration) {
	piece := make([]byte, 4096)
	for sum := 0; ; {
		n, err := from.Read(piece)
		if !p.calm.Load() {
			time.Sleep(p.random(latency))
			if stallAt >= 0 && sum+n > stallAt {
				p.tally.stalls.Add(1)
				p.sleep(stall)
				stallAt = -1
			}
			for left := p.cutLeft(); left > 0 && !p.calm.Load(); left = p.cutLeft() {
				p.sleep(left)
			}
			if resetAt >= 0 && sum+n > resetAt {
				p.tally.resets.Add(1)
				n, err = resetAt-sum, errReset
			}
		}
		sum += n
		if _, werr := to.Write(piece[:n]); werr != nil || err != nil {
			return
		}
	}
}

func (p *proxy) cutLeft() time.Duration {
	if until := p.cutUntil.Load(); until != nil {
		return time.Until(*until)
	}
	return 0
}

// sleep ends early when the trouble is over.
func (p *proxy) sleep(d time.Duration) {
	const step = 20 * time.Millisecond
	for until := time.Now().Add(d); !p.calm.Load() && time.Now().Before(until); {
		time.Sleep(min(step, time.Until(until)))
	}
}

// reset closes a connection without the farewell that closing has.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	c.Close()
}
