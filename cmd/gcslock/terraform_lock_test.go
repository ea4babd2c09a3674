package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/gcstest"
)

// TestTerraformRefresh: the default ttl is long, but a holder learns of a
// force-unlock earlier than that would have it, and has all of the grace where it
// is cut off.
func TestTerraformRefresh(t *testing.T) {
	directory := t.TempDir()
	text := `{"backend": {"type": "gcs", "config": {"bucket": "jobs", "prefix": "team/app"}}}`
	if err := os.WriteFile(filepath.Join(directory, "terraform.tfstate"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TF_DATA_DIR", directory)
	run := &terraformRun{runner: &runner{teller: &teller{out: io.Discard}, ttl: terraformTTL, grace: terraformGrace, owner: "me"}}
	if _, err := run.parse([]string{stateTarget, "terraform", "apply"}, 1); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		server := gcstest.New("jobs")
		client, err := server.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		lock, err := gcslock.New(client.Bucket(run.bucket), run.object, run.options...)
		if err != nil {
			t.Fatal(err)
		}
		lease, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server.Delete(run.bucket, run.object)
		begun := time.Now()
		<-lease.Context().Done()
		if after := time.Since(begun); after > 23*time.Second { // 20 s and the jitter
			t.Errorf("it learned of the unlock after %v", after)
		}
		_ = lease.Release(t.Context()) // it is lost
	})
	if after := killAfter(run.grace, run.ttl, 0); after != terraformGrace {
		t.Errorf("the default ttl cuts the default grace to %v", after)
	}
}

// TestTerraformEndpoint: the lock is where the backend's own endpoint leads.
func TestTerraformEndpoint(t *testing.T) {
	s := newStateSite(t, "echo ran")
	s.initialise(`{"bucket": "jobs", "prefix": "team/app", "storage_custom_endpoint": "` + s.endpoint() + `"}`)
	s.ranAtEndpoint()
}

// endpoint is the site's, as a backend's storage_custom_endpoint has it.
func (s *site) endpoint() string {
	return "http://" + strings.TrimPrefix(strings.TrimPrefix(s.env[0], "STORAGE_EMULATOR_HOST="), "http://") + "/storage/v1/"
}

// ranAtEndpoint has terraform run under a lock at the endpoint that is set, with
// no other lead to the site.
func (s *site) ranAtEndpoint() {
	s.Helper()
	s.env = append(s.env, "STORAGE_EMULATOR_HOST=", "GOOGLE_APPLICATION_CREDENTIALS="+serviceAccount(s.T))
	code, stdout, stderr := s.run("terraform", "--wait", "1m", stateTarget, "--", "terraform", "apply")
	if code != 0 || stdout != "ran\n" || s.ops() != "create get delete" {
		s.Errorf("exit code %d, stdout %q, stderr %q, requests %q", code, stdout, stderr, s.ops())
	}
}

// serviceAccount is a file of credentials, for which a server on loopback gives
// tokens.
func serviceAccount(t *testing.T) (file string) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "x", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "k", "client_email": "me@p.example", "token_uri": tokens.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
