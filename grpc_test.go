package gcslock

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/auth"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/internal/grpctest"
)

// grpc is a client of this machine's own, over gRPC. What is between the
// machine and the network, and the network's faults, are as over HTTP.
func (m *machine) grpc(opts ...option.ClientOption) *grpctest.Server {
	m.Helper()
	server, err := grpctest.New(context.Background(), m, opts...)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		if err := server.Close(); err != nil {
			m.Error(err)
		}
	})
	return server
}

// lockOn is a lock of this machine on the test object, through that client.
func (m *machine) lockOn(server *grpctest.Server, opts ...Option) *Lock {
	m.Helper()
	l, err := New(server.Bucket(testBucket), testObject, append([]Option{WithOwner(m.name)}, opts...)...)
	if err != nil {
		m.Fatal(err)
	}
	l.clock = m.clock
	return l
}

// TestOverGRPC runs the tests of the protocol once more, through
// storage.NewGRPCClient. The ones that are missing go by the server's Date, by
// an HTTP status in an error's text, or by what is on the wire.
func TestOverGRPC(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"TestCost": TestCost, "TestObject": TestObject, "TestAcquireWaits": TestAcquireWaits,
		"TestTryAcquire": TestTryAcquire, "TestLeaseContext": TestLeaseContext, "TestManyWaiters": TestManyWaiters,

		"TestCreateReplyLost": TestCreateReplyLost, "TestCreateReplyLostToCompetitor": TestCreateReplyLostToCompetitor,
		"TestCreateNotApplied": TestCreateNotApplied, "TestCreateSentTwice": TestCreateSentTwice,
		"TestVanishedBetween412AndRead": TestVanishedBetween412AndRead, "TestContradictingServer": TestContradictingServer,
		"TestLateCreate": TestLateCreate, "TestNearlyUsedUpLeaseIsNotReturned": TestNearlyUsedUpLeaseIsNotReturned,
		"TestSlowCreateIsOurs": TestSlowCreateIsOurs,

		"TestMissingBucket": TestMissingBucket, "TestHungRequests": TestHungRequests,
		"TestCancelledAcquireCleansUp": TestCancelledAcquireCleansUp, "TestCleanUpIsLimited": TestCleanUpIsLimited,
		"TestCancelledWait": TestCancelledWait, "TestCancelledWaitIsResolved": TestCancelledWaitIsResolved,
		"TestMaxWait": TestMaxWait,

		"TestKeepAlive": TestKeepAlive, "TestRefreshWrites": TestRefreshWrites, "TestRefreshReplyLost": TestRefreshReplyLost,
		"TestRefreshReplyLostToCompetitor": TestRefreshReplyLostToCompetitor, "TestRefreshSentTwice": TestRefreshSentTwice,
		"TestRefreshRetries": TestRefreshRetries, "TestOutageShorterThanTTL": TestOutageShorterThanTTL,
		"TestHungRefresh": TestHungRefresh, "TestObjectEdited": TestObjectEdited, "TestReadBackFails": TestReadBackFails,
		"TestNoCopyIsRefreshed": TestNoCopyIsRefreshed,

		"TestOutageLongerThanTTL": TestOutageLongerThanTTL, "TestObjectLost": TestObjectLost, "TestLateReply": TestLateReply,
		"TestPermissionLossIsWarnedAtOnce": TestPermissionLossIsWarnedAtOnce,

		"TestReleaseOnEndedContext": TestReleaseOnEndedContext, "TestReleaseReplyLost": TestReleaseReplyLost,
		"TestReleaseRetries": TestReleaseRetries, "TestReleaseForbidden": TestReleaseForbidden,
		"TestReleaseFindsLoss": TestReleaseFindsLoss, "TestReleaseOfEdited": TestReleaseOfEdited,
		"TestReleaseDuringRefresh": TestReleaseDuringRefresh, "TestReleaseMeets412": TestReleaseMeets412,
		"TestReleaseLeavesNoCopy": TestReleaseLeavesNoCopy,

		"TestCrashedHolder": TestCrashedHolder, "TestWaiterWakesUp": TestWaiterWakesUp,
		"TestTTLOfTheHolderCounts": TestTTLOfTheHolderCounts,
		"TestDeadLockIsFreed":      TestDeadLockIsFreed, "TestForeignObject": TestForeignObject, "TestReclaim": TestReclaim,
		"TestInspect": TestInspect, "TestBreak": TestBreak, "TestDo": TestDo, "TestCallerDriven": TestCallerDriven,
	} {
		t.Run(name, test)
	}
}

// TestGRPCOutcomes: every code, as the real client hands it on, for each of the
// four operations.
func TestGRPCOutcomes(t *testing.T) {
	for code, want := range map[codes.Code]outcome{
		codes.FailedPrecondition: mismatch, codes.AlreadyExists: mismatch,
		codes.NotFound:          absent,
		codes.ResourceExhausted: refused,
		codes.PermissionDenied:  permanent, codes.Unauthenticated: permanent, codes.InvalidArgument: permanent,
		codes.OutOfRange: permanent, codes.Unimplemented: permanent,
		codes.Aborted: unknown, codes.Unavailable: unknown, codes.Internal: unknown, codes.DeadlineExceeded: unknown,
		codes.Canceled: unknown, codes.Unknown: unknown, codes.DataLoss: unknown,
	} {
		t.Run(code.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				server := w.machine("a").grpc()
				s := newGCSStore(server.Bucket(testBucket), testObject, "gs://jobs/nightly/lock", &settings{})
				metadata, v := map[string]string{"k": "v"}, version{1, 1}
				for _, tt := range []struct {
					op     operation
					method string
					call   func(context.Context) reply
				}{
					{opCreate, http.MethodPost, func(ctx context.Context) reply { return s.create(ctx, metadata) }},
					{opRead, http.MethodGet, s.read},
					{opUpdate, http.MethodPatch, func(ctx context.Context) reply { return s.update(ctx, v, metadata) }},
					{opDelete, http.MethodDelete, func(ctx context.Context) reply { return s.remove(ctx, v) }},
				} {
					want := want
					if tt.op == opCreate && code == codes.NotFound {
						want = permanent // the bucket
					}
					server.Fail(tt.method, code)
					r := tt.call(t.Context())
					if r.outcome != want || r.err == nil || !r.date.IsZero() {
						t.Errorf("%s is %v (%v, date %v), want %v", tt.op, r.outcome, r.err, r.date, want)
					}
				}
				if got := w.ops(""); got != "" {
					t.Errorf("the client has sent %q beside", got)
				}
			})
		})
	}
}

// TestGRPCTakesOverByWatching: no reply has a Date. One that comes long after
// the crash can't tell it from a live lock, waits for a whole ttl, and is in
// soon after; a try, which does not wait, never takes over.
func TestGRPCTakesOverByWatching(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.machine("a"), w.machine("b")
		dead, err := a.lockOn(a.grpc()).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.crash(dead)
		time.Sleep(time.Hour)
		lock := b.lockOn(b.grpc())
		if _, err := lock.TryAcquire(t.Context()); !errors.Is(err, ErrLocked) {
			t.Errorf("a try is %v, want ErrLocked", err)
		}
		w.inject(gcstest.Delete, 1, gcstest.LoseReply())
		began := time.Now()
		lease, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		took(t, "the take-over", began, time.Minute, time.Minute+1500*time.Millisecond)
		if !strings.HasSuffix(w.ops("b"), "get delete get create") {
			t.Errorf("requests are %q, want the lost reply of the delete resolved by a read", w.ops("b"))
		}
		w.release(lease)
	})
}

// TestGRPCPermissions: as over HTTP, a missing one ends the wait, and is named.
func TestGRPCPermissions(t *testing.T) {
	for op, least := range map[gcstest.Op]time.Duration{
		gcstest.Create: 0,
		gcstest.Get:    0,
		gcstest.Delete: time.Minute, // by watching
	} {
		t.Run(string(op), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.rival()
				permission := "storage.objects." + string(op)
				w.inject(op, 0, gcstest.Forbid(permission))
				a := w.machine("a")
				began := time.Now()
				_, err := a.lockOn(a.grpc()).Acquire(t.Context())
				took(t, "the error", began, least, least+time.Millisecond)
				says(t, err, "gs://jobs/nightly/lock", "PermissionDenied", "needs permission "+permission)
				if errors.Is(err, ErrLocked) {
					t.Errorf("%v counts as locked", err)
				}
			})
		})
	}
}

// TestGRPCConnectionBreaks in the middle of each write, which is applied. The
// client connects anew, and the reply that was lost is resolved.
func TestGRPCConnectionBreaks(t *testing.T) {
	for _, op := range []gcstest.Op{gcstest.Create, gcstest.Update, gcstest.Delete} {
		t.Run(string(op), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.machine("a")
				server := a.grpc()
				w.inject(op, 1, gcstest.HangReply())
				cut := func() {
					go func() {
						time.Sleep(time.Second)
						server.Unplug()
						server.Plug()
					}()
				}
				if op == gcstest.Create {
					cut()
				}
				lease, err := a.lockOn(server, WithManualRefresh()).Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if op == gcstest.Update {
					cut()
				}
				before := lease.Expires()
				time.Sleep(time.Millisecond)
				if err := lease.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
				if !lease.Expires().After(before) {
					t.Errorf("expires %v after a refresh, %v before", lease.Expires(), before)
				}
				if op == gcstest.Delete {
					cut()
				}
				began := time.Now()
				w.release(lease)
				if op == gcstest.Delete {
					took(t, "the release", began, time.Second, 5*time.Second)
				}
				if _, ok := w.object(); ok {
					t.Error("the object is still there")
				}
			})
		})
	}
}

// A tokenSource is one of a caller's.
type tokenSource struct{ err error }

func (s *tokenSource) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, s.err
}
func (s *tokenSource) RequireTransportSecurity() bool { return false }

// TestGRPCTokenSource: gRPC's client says UNAUTHENTICATED for a token endpoint
// that is down, as for one that says no. Only the latter ends the wait.
func TestGRPCTokenSource(t *testing.T) {
	response := func(code int) *http.Response { return &http.Response{StatusCode: code, Status: http.StatusText(code)} }
	for name, tt := range map[string]struct {
		err       error
		permanent bool
	}{
		"down":                 {&auth.Error{Response: response(503)}, false},
		"busy":                 {&auth.Error{Response: response(429)}, false},
		"slow":                 {&auth.Error{Response: response(408)}, false},
		"not reached":          {errors.New("dial tcp: connection refused"), false},
		"refused":              {&auth.Error{Response: response(400)}, true},
		"forbidden":            {&auth.Error{Response: response(403)}, true},
		"revoked":              {&oauth2.RetrieveError{ErrorCode: "invalid_grant", ErrorDescription: "revoked"}, true},
		"oauth2, down":         {&oauth2.RetrieveError{ErrorCode: "temporarily_unavailable"}, false},
		"oauth2, unauthorized": {&oauth2.RetrieveError{Response: &http.Response{Status: "401 Unauthorized"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.machine("a")
				server := a.grpc(option.WithGRPCDialOption(grpc.WithPerRPCCredentials(&tokenSource{tt.err})))
				_, err := a.lockOn(server, WithMaxWait(time.Minute)).Acquire(t.Context())
				if errors.Is(err, context.DeadlineExceeded) == tt.permanent {
					t.Errorf("%v: the wait ended at once, or went on, and should not have", err)
				}
				if says := strings.Contains(err.Error(), "the credentials are missing, expired or revoked"); says != tt.permanent {
					t.Errorf("%v tells to mend the credentials: %v", err, says)
				}
			})
		})
	}
}
