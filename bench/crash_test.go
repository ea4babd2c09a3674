package bench

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkCrash is the end of a wait for a holder that was killed with 20 locks, a
// waiter for each, that was there before the crash or came after it. The time is
// from the lock's expiry, which is the ttl after its last update by the clock that
// the server and the waiter share, to Acquire's return; and from when this waiter could
// prove that the lock was stale, by a look at the last refresh a ttl ago or by the
// server's clock. Reads are counted from the crash, or from when the waiter came, for
// each second of each wait, without the last one, which finds the lock stale.
func BenchmarkCrash(b *testing.B) {
	for _, before := range sized([]bool{true, false}, []bool{false}) {
		name := map[bool]string{true: "before", false: "after"}[before]
		b.Run("waiter="+name, func(b *testing.B) { benchmarkCrash(b, before) })
	}
}

func benchmarkCrash(b *testing.B, before bool) {
	locks, ttl := sized(20, 2), sized(6*time.Second, 3*time.Second)
	url := startServer(b, serverSetting{})
	holder := startProcess(b, beHolder, holderSetting{URL: url, Leases: locks, TTL: ttl})
	holder.line(b)
	if !before {
		holder.kill()
	}
	s, err := newSite(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	waits := waitForAll(b, s, locks)
	if before {
		// Some refreshes later: each lock is then somewhere between two.
		time.Sleep(ttl)
		holder.kill()
	}
	began, sent := time.Now(), s.counter.counts()
	var after, proven []float64
	var waited time.Duration
	for range locks {
		w, ok := <-waits
		if !ok {
			b.FailNow()
		}
		after = append(after, w.at.Sub(w.expired).Seconds())
		proven = append(proven, w.at.Sub(w.provable).Seconds())
		waited += w.at.Sub(began)
	}
	requests := s.counter.counts().minus(sent)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(after, 0.5), "after-expiry-median-s")
	b.ReportMetric(quantile(after, 1), "after-expiry-worst-s")
	b.ReportMetric(quantile(proven, 0.5), "after-proof-median-s")
	b.ReportMetric(quantile(proven, 1), "after-proof-worst-s")
	b.ReportMetric(float64(requests.Reads-int64(locks))/waited.Seconds(), "reads/s")
	requests.report(b, locks, "takeover")
}

func objectName(i int) string { return fmt.Sprintf("lock-%d", i) }
