//go:build unix

package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/gcslock/gcslock/gcstest"
)

// TestCheckInterrupted: the probe objects go, of which there are ten by then.
func TestCheckInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			s := newSite(t)
			inside := gcstest.NewBarrier()
			s.server.Inject(gcstest.Fault{
				Op: gcstest.Update, Times: 1, Do: gcstest.Hold(inside),
				Match: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "-5") },
			})
			p := s.start("check", target)
			if err := inside.Arrived(s.Context(), 1); err != nil {
				t.Fatal(err)
			}
			p.signal(sig)
			if code := p.wait(); code != exitSignal+int(sig) {
				t.Errorf("exit code %d", code)
			}
			p.stderr.until("ended by signal " + sig.String() + " before there was a verdict on gs://jobs/lock")
			if rest := p.stdout.rest(); rest != "" {
				t.Errorf("stdout %q", rest)
			}
			creates := 0
			for _, r := range s.server.Requests() {
				if r.Op == gcstest.Create && r.Status == http.StatusOK && strings.Contains(r.Object, ".gcslock-check-") {
					creates++
				}
			}
			if creates < 11 {
				t.Errorf("%d objects were made", creates)
			}
			s.wantEmpty()
		})
	}
}
