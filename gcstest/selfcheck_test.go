package gcstest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/iterator"

	"github.com/gcslock/gcslock/gcstest"
)

// TestSelfCheckLeavesNothing, whether it passes, is forbidden something in the
// middle, or is cancelled; on a versioned bucket neither.
func TestSelfCheckLeavesNothing(t *testing.T) {
	for name, fault := range map[string]gcstest.Action{"passes": nil, "forbidden": gcstest.Forbid("storage.objects.update")} {
		t.Run(name, func(t *testing.T) {
			s := gcstest.New()
			s.CreateBucket("b", gcstest.Versioned())
			if fault != nil {
				s.Inject(gcstest.Fault{Op: gcstest.Update, Do: fault})
			}
			c := client(t, s)
			err := gcstest.SelfCheck(t.Context(), c.Bucket("b"), "some/prefix-")
			if (err == nil) != (fault == nil) {
				t.Errorf("%v", err)
			}
			if fault != nil && !strings.Contains(err.Error(), "403") {
				t.Errorf("%v does not tell of the 403", err)
			}
			probed := s.Requests()[0].Object
			if !strings.HasPrefix(probed, "some/prefix-") {
				t.Errorf("probed %q", probed)
			}
			if _, err := c.Bucket("b").Objects(t.Context(), nil).Next(); !errors.Is(err, iterator.Done) {
				t.Errorf("left an object: %v", err)
			}
			if left := s.Noncurrent("b", probed); len(left) != 0 {
				t.Errorf("left %d noncurrent versions", len(left))
			}
		})
	}
}

func TestSelfCheckCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gcstest.New("b")
		c := client(t, s)
		s.Inject(gcstest.Fault{Op: gcstest.Update, Do: gcstest.Hang()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := gcstest.SelfCheck(ctx, c.Bucket("b"), "")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's error", err)
		}
		if _, ok := s.Object("b", s.Requests()[0].Object); ok {
			t.Error("left its object")
		}
	})
}

// TestSelfCheckUnderRateLimit waits as it is asked to.
func TestSelfCheckUnderRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gcstest.New("b")
		s.LimitRate(time.Second)
		if err := gcstest.SelfCheck(t.Context(), client(t, s).Bucket("b"), ""); err != nil {
			t.Error(err)
		}
	})
}
