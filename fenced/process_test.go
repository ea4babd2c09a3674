//go:build unix

package fenced

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// childEndpoint, in the environment, makes this test's binary the paused process.
const childEndpoint = "FENCED_TEST_ENDPOINT"

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(childEndpoint); endpoint != "" {
		pausedWriter(endpoint)
		return
	}
	os.Exit(m.Run())
}

// TestPausedProcess: a process is stopped just before its write. Its successor gets
// the lock when the ttl is over, and writes. The process goes on, sends its write, and
// is refused.
func TestPausedProcess(t *testing.T) {
	server := gcstest.New(testBucket)
	server.Put(testBucket, testState, gcstest.Object{Content: []byte("0")})
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })

	var said bytes.Buffer
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEndpoint+"="+listener.URL())
	child.Stdout, child.Stderr = &said, &said
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	awaitStop(t, child.Process.Pid)

	client, err := server.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lock, err := gcslock.New(client.Bucket(testBucket), testLock, gcslock.WithTTL(processTTL))
	if err != nil {
		t.Fatal(err)
	}
	err = lock.Do(t.Context(), func(ctx context.Context, lease *gcslock.Lease) error {
		o, err := Open(ctx, lease, client.Bucket(testBucket).Object(testState))
		if err != nil {
			return err
		}
		if err := o.Write(ctx, []byte("successor")); err != nil {
			return err
		}
		server.ResetRequests()
		if err := child.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		if err := child.Wait(); err != nil {
			return err
		}
		return o.Write(ctx, []byte("successor again"))
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if got := said.String(); !strings.Contains(got, "fenced true, uncertain false") {
		t.Errorf("the paused process said %q", got)
	}
	if o, _ := server.Object(testBucket, testState); string(o.Content) != "successor again" {
		t.Errorf("the state is %q", o.Content)
	}
	refused := 0
	for _, r := range server.Requests() {
		if r.Op == gcstest.Create && r.Object == testState && r.Status == http.StatusPreconditionFailed {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d writes were refused by the server, want the paused process's one", refused)
	}
}

const processTTL = 3 * time.Second

// awaitStop waits until the child has stopped itself.
func awaitStop(t *testing.T, pid int) {
	t.Helper()
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || !status.Stopped() {
			t.Fatalf("the child did not stop itself: %v, %v", err, status)
		}
		return
	}
}

// pausedWriter is the process. It stops itself when its write is about to leave.
func pausedWriter(endpoint string) {
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	client, err := storage.NewClient(ctx, option.WithEndpoint(endpoint+"/storage/v1/"), option.WithoutAuthentication(),
		option.WithHTTPClient(&http.Client{Transport: &stopper{}}))
	fail(err)
	lock, err := gcslock.New(client.Bucket(testBucket), testLock, gcslock.WithTTL(processTTL))
	fail(err)
	lease, err := lock.Acquire(ctx)
	fail(err)
	o, err := Open(ctx, lease, client.Bucket(testBucket).Object(testState))
	fail(err)
	err = o.Write(ctx, []byte("paused"))
	fmt.Printf("fenced %v, uncertain %v: %v\n", errors.Is(err, ErrFenced), errors.Is(err, ErrUncertain), err)
}

// stopper stops the process before a write of the state is sent.
type stopper struct{ stopped bool }

func (s *stopper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.Contains(r.URL.String(), "state") && !s.stopped {
		s.stopped = true
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return nil, err
		}
		time.Sleep(10 * time.Millisecond) // this thread may be the last to stop
	}
	return http.DefaultTransport.RoundTrip(r)
}
