package gcslock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	b := backoff{random: chance, shortest: 100 * time.Millisecond, longest: time.Second}
	seen := map[time.Duration]bool{}
	last := time.Duration(0)
	longest := last
	for range 1000 {
		d := b.next()
		if d < b.shortest || d > min(b.longest, max(3*last, b.shortest)) {
			t.Fatalf("pause of %v after one of %v", d, last)
		}
		last, longest, seen[d] = d, max(longest, d), true
	}
	if len(seen) < 100 || longest < b.longest/2 {
		t.Errorf("%d different pauses of up to %v in 1000: no jitter or no growth", len(seen), longest)
	}
	same := backoff{random: chance, shortest: time.Second, longest: time.Second}
	if d := same.next(); d != time.Second {
		t.Errorf("pause of %v where only 1s is allowed", d)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("slept %v, %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := sleep(ctx, time.Hour); err != context.DeadlineExceeded || time.Since(began) != time.Minute {
			t.Errorf("with a context of a minute slept %v, %v", time.Since(began), err)
		}
	})
}
