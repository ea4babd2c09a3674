package gcstest_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/gcstest"
)

func listen(t *testing.T, s *gcstest.Server) *gcstest.Listener {
	t.Helper()
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestListenOnLoopbackOnly: other machines must not reach a server that knows
// no credentials.
func TestListenOnLoopbackOnly(t *testing.T) {
	s := gcstest.New()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1"} {
		l, err := s.Listen(addr)
		if err == nil {
			l.Close()
			t.Errorf("listens on %q", addr)
			continue
		}
		if !strings.HasPrefix(err.Error(), "gcstest: ") || !strings.Contains(err.Error(), addr) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	l, err := s.Listen("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if host, _, _ := net.SplitHostPort(l.Addr().String()); !net.ParseIP(host).IsLoopback() {
		t.Errorf("localhost is %v", l.Addr())
	}
}

// TestEmulatorHost leads the storage client to the listener, as
// STORAGE_EMULATOR_HOST. Both kinds of content reads work.
func TestEmulatorHost(t *testing.T) {
	s := gcstest.New("b")
	t.Setenv("STORAGE_EMULATOR_HOST", listen(t, s).EmulatorHost())
	c, err := storage.NewClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustCreate(t, object(c, "x"))
	r, err := object(c, "x").NewReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// TestClientIgnoresTheEnvironment: a client of this server is not led
// elsewhere.
func TestClientIgnoresTheEnvironment(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
	s := gcstest.New("b")
	mustCreate(t, object(client(t, s), "in-process"))
	c, err := listen(t, s).Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustCreate(t, object(c, "listening"))
}

// TestCloseEndsWhatHangs, and waits for it.
func TestCloseEndsWhatHangs(t *testing.T) {
	s := gcstest.New("b")
	barrier := gcstest.NewBarrier() // never released
	s.Inject(gcstest.Fault{Do: gcstest.Hold(barrier)})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := http.Get(l.URL() + "/storage/v1/b/b/o/x")
		ended <- err
	}()
	if err := barrier.Arrived(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the request that hung was answered")
	}
	if err := l.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("still listens")
	}
}

// TestLostReplyOverListener: the client's own transport makes an error of it.
func TestLostReplyOverListener(t *testing.T) {
	s := gcstest.New("b")
	c, err := listen(t, s).Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Inject(gcstest.Fault{Op: gcstest.Create, Times: 1, Do: gcstest.LoseReply()})
	if _, err := create(context.Background(), object(c, "x"), ""); err == nil {
		t.Error("a reply that was lost arrived")
	}
	if _, ok := s.Object("b", "x"); !ok {
		t.Error("the create was not applied")
	}
}
