package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
	"github.com/gcslock/gcslock/gcstest"
)

// plainLock puts a lock object of Terraform's own in place.
func (s *site) plainLock(body string) gcstest.Object {
	return s.server.Put("jobs", stateLock, gcstest.Object{Content: []byte(body)})
}

const plainInfo = `{"ID":"x","Operation":"OperationTypePlan","Info":"","Who":"alice@laptop\u001b[31m","Version":"1.9.8","Created":"2026-01-02T03:04:05Z","Path":"p"}`

// TestTerraformForeign: a lock of Terraform's own is told of as Terraform does,
// and stays.
func TestTerraformForeign(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		says       []string
	}{
		{"terraform", plainInfo, []string{
			"Terraform's own lock, which never expires and is never taken over",
			`"OperationTypePlan" by "alice@laptop\x1b[31m", Terraform "1.9.8"`, "Z), ID %d", "terraform force-unlock %d",
		}},
		{"no JSON", "\x1b", []string{"can't be read as a lock of Terraform", ", generation %d"}},
		{"other JSON", "{}", []string{"can't be read as a lock of Terraform (it has no ID)"}},
		{"empty", "", []string{"can't be read as a lock of Terraform"}},
	} {
		waits := []string{"0"}
		if tt.body == plainInfo {
			waits = append(waits, "2s")
		}
		for _, wait := range waits {
			t.Run(tt.name+" wait "+wait, func(t *testing.T) {
				s := newStateSite(t, "echo ran")
				lock := s.plainLock(tt.body)
				code, stdout, stderr := s.run("terraform", "--wait", wait, stateTarget, "--", "terraform", "apply")
				told := strings.Split(strings.TrimSpace(stderr), "\n")
				if code != exitLocked || stdout != "" || len(told) < 2 || strings.Contains(stderr, "\x1b") {
					t.Fatalf("exit code %d, stdout %q, stderr %q; want %d and two lines", code, stdout, stderr, exitLocked)
				}
				last := told[len(told)-1]
				for _, line := range []string{told[0], last} { // that it waits, and that it does not any more
					for _, text := range tt.says {
						if text = strings.ReplaceAll(text, "%d", fmt.Sprint(lock.Generation)); !strings.Contains(line, text) {
							t.Errorf("%q does not say %q", line, text)
						}
					}
				}
				if over := strings.Contains(last, "the wait is over"); over != (wait != "0") {
					t.Errorf("wait %s: %q", wait, last)
				}
				if bodies := s.bodies(); tt.body == plainInfo && bodies != 1 {
					t.Errorf("%d bodies read", bodies)
				}
				if now, ok := s.stateLock(); !ok || now.Generation != lock.Generation {
					t.Error("the lock is gone")
				}
			})
		}
	}
}

// TestTerraformForeignCost: each lock's body is read once.
func TestTerraformForeignCost(t *testing.T) {
	s := newStateSite(t, "")
	s.plainLock(plainInfo)
	p := s.start("terraform", "--json", stateTarget, "--", "terraform", "apply")
	p.stderr.until("alice@")
	second := s.plainLock(strings.Replace(plainInfo, "alice", "bob", 1))
	var told message
	if err := json.Unmarshal([]byte(p.stderr.until("bob@")), &told); err != nil {
		t.Fatal(err)
	}
	if h := told.Holder; h == nil || !h.Foreign || !strings.HasPrefix(h.Owner, "bob@") || h.Operation != "OperationTypePlan" ||
		h.Since.Year() != 2026 || h.Generation != second.Generation {
		t.Errorf("the holder is %+v", h)
	}
	s.server.Delete("jobs", stateLock)
	if code, bodies := p.wait(), s.bodies(); code != 0 || bodies != 2 {
		t.Errorf("exit code %d, %d bodies read", code, bodies)
	}
}

// bodies is how many reads of an object's content there were.
func (s *site) bodies() int {
	n := 0
	for _, r := range s.server.Requests() {
		if strings.Contains(r.URL, "alt=media") {
			n++
		}
	}
	return n
}

// TestPayloadTerraform gives a script's lock the same lock information.
func TestPayloadTerraform(t *testing.T) {
	s := newStateSite(t, "")
	p, release := s.startHeld("run", "--payload-terraform", "--operation", "repair", "gs://jobs/"+stateLock, "--", "sh", "-c", "echo ready; read line")
	p.stdout.until("ready")
	obj, _ := s.stateLock()
	info, err := terraform.ParseLockInfo(obj.Content)
	if err != nil || info.Operation != "repair" || !strings.HasPrefix(info.Version, "gcslock ") || info.Path != "gs://jobs/"+stateLock ||
		!strings.Contains(info.Info, "frees itself 1m0s after") || obj.ContentType != "application/json" {
		t.Errorf("lock information %+v (%v) of type %q", info, err, obj.ContentType)
	}
	release()
	p.wait()

	s.plainLock(plainInfo)
	code, _, stderr := s.run("run", "--wait", "0", "--payload-terraform", "gs://jobs/"+stateLock, "--", "true")
	if code != exitLocked || !strings.Contains(stderr, "alice@laptop") || !strings.Contains(stderr, "terraform force-unlock ") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}
