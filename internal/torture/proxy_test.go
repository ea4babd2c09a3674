package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// proxied is a proxy in front of a server that answers whatever it reads with
// that and tells it, until its connection ends, and a client's connection.
func proxied(t *testing.T, f fate) (*proxy, net.Conn, <-chan string) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	arrived := make(chan string, 1)
	go func() {
		defer close(arrived)
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for piece := make([]byte, 100); ; {
			n, err := conn.Read(piece)
			if err != nil {
				return
			}
			arrived <- string(piece[:n])
			_, _ = conn.Write(piece[:n])
		}
	}()
	f.latency = 1
	p, err := newProxy(func() string { return server.Addr().String() }, func(*rand.Rand) fate { return f }, 1, &tally{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	client, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return p, client, arrived
}

func say(t *testing.T, client net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(client, text); err != nil {
		t.Fatal(err)
	}
}

// TestResetReply: the request is carried out, and a part of the reply arrives.
func TestResetReply(t *testing.T) {
	p, client, arrived := proxied(t, fate{resetRequest: -1, resetReply: 3, stallReply: -1})
	say(t, client, "request")
	if got := <-arrived; got != "request" {
		t.Errorf("%q arrived", got)
	}
	// The reset discards what the client has not read yet.
	if got, err := io.ReadAll(client); err == nil || !strings.HasPrefix("req", string(got)) {
		t.Errorf("the client got %q, %v", got, err)
	}
	if n := p.tally.resets.Load(); n != 1 {
		t.Errorf("%d resets counted", n)
	}
}

func TestResetRequest(t *testing.T) {
	_, client, arrived := proxied(t, fate{resetRequest: 3, resetReply: -1, stallReply: -1, linger: time.Hour})
	say(t, client, "request")
	if got := <-arrived; got != "req" {
		t.Errorf("%q arrived", got)
	}
	if err := client.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(client); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("no reset: %v", err)
	}
}

// TestCut: what was sent before the client gave up arrives, late, and the
// connection outlives that.
func TestCut(t *testing.T) {
	const cut, linger = 300 * time.Millisecond, 200 * time.Millisecond
	p, client, arrived := proxied(t, fate{resetRequest: -1, resetReply: -1, stallReply: -1, linger: linger})
	began := time.Now()
	p.cut(cut)
	say(t, client, "late")
	client.Close()
	if got := <-arrived; got != "late" {
		t.Errorf("%q arrived", got)
	}
	if took := time.Since(began); took < cut {
		t.Errorf("arrived after %v, cut off for %v", took, cut)
	}
	<-arrived
	if took := time.Since(began); took < cut+linger {
		t.Errorf("the server's connection ended after %v, cut off for %v", took, cut)
	}
}

// TestPump: what is held up comes whole, and in calm nothing happens.
func TestPump(t *testing.T) {
	p := &proxy{tally: &tally{}, chance: (&run{}).random(0)}
	const stall = 100 * time.Millisecond
	began := time.Now()
	var got bytes.Buffer
	p.pump(&got, strings.NewReader("reply"), 1, -1, 2, stall)
	if took := time.Since(began); got.String() != "reply" || took < stall || p.tally.stalls.Load() != 1 {
		t.Errorf("%q after %v, %d counted", &got, took, p.tally.stalls.Load())
	}
	p.calm.Store(true)
	p.cut(time.Hour)
	got.Reset()
	p.pump(&got, strings.NewReader("reply"), time.Hour, 0, 0, time.Hour)
	if got.String() != "reply" {
		t.Errorf("%q in calm", &got)
	}
}

// TestNoServer: while the server is down connections are refused.
func TestNoServer(t *testing.T) {
	p, err := newProxy(func() string { return "" }, anyFate, 1, &tally{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	client, err := net.Dial("tcp", p.address())
	if err != nil {
		return // the reset was faster
	}
	defer client.Close()
	if _, err := io.ReadAll(client); err == nil {
		t.Error("no reset")
	}
}
