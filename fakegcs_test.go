package gcslock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// A backend is something that the behaviour suite runs on, over the real
// client and in real time.
type backend struct {
	bucket *storage.BucketHandle
	prefix string
	strict bool // enforces preconditions
}

// The variable names a bucket to run the suite on, gs://BUCKET or
// gs://BUCKET/PREFIX, with Application Default Credentials.
const realBucket = "GCSLOCK_TEST_BUCKET"

func TestBackends(t *testing.T) {
	for name, open := range map[string]func(*testing.T) backend{
		"gcstest in process":  inProcess,
		"gcstest listening":   listening,
		"fakestorage memory":  func(t *testing.T) backend { return stock(t, "") },
		"fakestorage on disk": func(t *testing.T) backend { return stock(t, t.TempDir()) },
		"real bucket":         onCloudStorage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			for _, behaviour := range []struct {
				name   string
				strict bool // needs preconditions
				test   func(*testing.T, backend, string)
			}{
				{"self-check", true, testSelfCheck},
				{"lock, refresh, release", false, testLockRefreshRelease},
				{"live lock is not stolen", false, testNotStolen},
				{"dead lock is taken over", false, testTakenOver},
				{"one at a time", false, testOneAtATime},
				{"who holds it", false, testWho},
				{"deleted under the holder", false, testDeleted},
				{"replaced under the holder", true, testReplaced},
				{"edited under the holder", true, testEdited},
			} {
				if behaviour.strict && !b.strict {
					continue // listed in docs/testing.md
				}
				t.Run(behaviour.name, func(t *testing.T) {
					t.Parallel()
					behaviour.test(t, b, b.prefix+rand.Text())
				})
			}
		})
	}
}

func inProcess(t *testing.T) backend {
	client, err := gcstest.New("b").Client(context.Background())
	return strictly(t, client, err)
}

func listening(t *testing.T) backend {
	listener, err := gcstest.New("b").Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := listener.Client(context.Background())
	return strictly(t, client, err)
}

func strictly(t *testing.T, client *storage.Client, err error) backend {
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return backend{bucket: client.Bucket("b"), strict: true}
}

// stock is fakestorage as it is, but for requests one at a time: the race
// detector finds races within it.
func stock(t *testing.T, root string) backend {
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, StorageRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Stop)
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "b"})
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fake.HTTPHandler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := storage.NewClient(context.Background(), option.WithoutAuthentication(),
		option.WithEndpoint(server.URL+"/storage/v1/"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return backend{bucket: client.Bucket("b")}
}

func onCloudStorage(t *testing.T) backend {
	name, ok := strings.CutPrefix(os.Getenv(realBucket), "gs://")
	if !ok {
		t.Skipf("%s is not set: nothing was tried on a real bucket", realBucket)
	}
	client, err := storage.NewClient(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	bucket, prefix, _ := strings.Cut(name, "/")
	return backend{bucket: client.Bucket(bucket), prefix: prefix, strict: true}
}

func (b backend) lock(t *testing.T, object, owner string, opts ...gcslock.Option) *gcslock.Lock {
	t.Helper()
	l, err := gcslock.New(b.bucket, object, append([]gcslock.Option{gcslock.WithOwner(owner)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (b backend) acquire(t *testing.T, object, owner string, opts ...gcslock.Option) *gcslock.Lease {
	t.Helper()
	lease, err := b.lock(t, object, owner, opts...).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// short is the shortest ttl, so that the suite ends soon.
var short = gcslock.WithTTL(3 * time.Second)

func testSelfCheck(t *testing.T, b backend, object string) {
	if err := gcstest.SelfCheck(t.Context(), b.bucket, object); err != nil {
		t.Error(err)
	}
}

func testLockRefreshRelease(t *testing.T, b backend, object string) {
	lease := b.acquire(t, object, "a", gcslock.WithManualRefresh())
	token := lease.Token()
	for range 20 {
		before := lease.Expires()
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !lease.Expires().After(before) {
			t.Errorf("expires %v after a refresh, %v before", lease.Expires(), before)
		}
	}
	if lease.Token() != token {
		t.Errorf("the token went from %d to %d", token, lease.Token())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := b.lock(t, object, "a").Inspect(t.Context()); !errors.Is(err, gcslock.ErrNotHeld) {
		t.Errorf("after the release: %v", err)
	}
}

// testNotStolen waits for more than two ttls on a lock that is kept alive.
func testNotStolen(t *testing.T, b backend, object string) {
	lease := b.acquire(t, object, "a", short)
	_, err := b.lock(t, object, "b", short, gcslock.WithMaxWait(7*time.Second)).Acquire(t.Context())
	var held *gcslock.HeldError
	if !errors.As(err, &held) || held.Holder.Owner != "a" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the waiter got %v, want to be kept out by a", err)
	}
	if err := lease.Err(); err != nil {
		t.Errorf("the holder lost it: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// testTakenOver lets a lease run out, and has a waiter there that gets in.
func testTakenOver(t *testing.T, b backend, object string) {
	dead := b.acquire(t, object, "a", short, gcslock.WithManualRefresh())
	lease := b.acquire(t, object, "b", short, gcslock.WithMaxWait(time.Minute))
	if dead.Err() == nil {
		t.Error("two valid leases at once")
	}
	if err := dead.Release(t.Context()); !errors.Is(err, gcslock.ErrLockAbandoned) {
		t.Errorf("release of the lost lease: %v", err)
	}
	// It has left the successor's object alone.
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func testOneAtATime(t *testing.T, b backend, object string) {
	var inside, turns atomic.Int32
	var workers sync.WaitGroup
	for range 4 {
		lock := b.lock(t, object, "worker", gcslock.WithWait(10*time.Millisecond, 100*time.Millisecond))
		workers.Go(func() {
			for range 5 {
				err := lock.Do(t.Context(), func(context.Context, *gcslock.Lease) error {
					if inside.Add(1) != 1 {
						t.Error("two holders at once")
					}
					turns.Add(1)
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	if turns.Load() != 20 {
		t.Errorf("%d turns, want 20", turns.Load())
	}
}

func testWho(t *testing.T, b backend, object string) {
	lease := b.acquire(t, object, "a", gcslock.WithOperation("import"))
	_, err := b.lock(t, object, "b").TryAcquire(t.Context())
	var held *gcslock.HeldError
	if !errors.As(err, &held) || held.Holder.Owner != "a" || held.Holder.Operation != "import" || held.Holder.Generation != lease.Token() {
		t.Fatalf("a try tells %v", err)
	}
	if err := b.lock(t, object, "b").Break(t.Context(), held.Holder.Generation); err != nil {
		t.Fatal(err)
	}
	if err := lease.Refresh(t.Context()); !errors.Is(err, gcslock.ErrLockAbandoned) {
		t.Errorf("refresh of a broken lock: %v", err)
	}
}

func testDeleted(t *testing.T, b backend, object string) {
	lease := b.acquire(t, object, "a", short)
	if err := b.bucket.Object(object).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-lease.Context().Done()
	if cause := context.Cause(lease.Context()); !errors.Is(cause, gcslock.ErrLockAbandoned) {
		t.Errorf("the cause is %v", cause)
	}
	if _, err := b.bucket.Object(object).Attrs(t.Context()); !errors.Is(err, storage.ErrObjectNotExist) {
		t.Errorf("after the loss the object is %v, want absent", err)
	}
}

func testReplaced(t *testing.T, b backend, object string) {
	lease := b.acquire(t, object, "a", gcslock.WithManualRefresh())
	if err := b.bucket.Object(object).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	successor := b.acquire(t, object, "b")
	if err := lease.Refresh(t.Context()); !errors.Is(err, gcslock.ErrLockAbandoned) {
		t.Errorf("refresh: %v", err)
	}
	if err := lease.Release(t.Context()); !errors.Is(err, gcslock.ErrLockAbandoned) {
		t.Errorf("release: %v", err)
	}
	if err := successor.Release(t.Context()); err != nil {
		t.Errorf("the successor's release: %v", err)
	}
}

func testEdited(t *testing.T, b backend, object string) {
	lease := b.acquire(t, object, "a", gcslock.WithManualRefresh())
	_, err := b.bucket.Object(object).Update(t.Context(), storage.ObjectAttrsToUpdate{Metadata: map[string]string{"note": "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Refresh(t.Context()); err != nil {
		t.Errorf("refresh: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}
