package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
)

const (
	// sharedIdle is how long the emulator that run has started outlives the
	// last request.
	sharedIdle = 10 * time.Minute

	// idleVariable sets another time, for tests.
	idleVariable = "GCSLOCK_EMULATOR_IDLE"

	// answerLimit is how long an emulator on this machine may take to answer,
	// or to start.
	answerLimit = 10 * time.Second
)

// A sharedState is the state file's content: where this user's emulator is, and
// by which bucket it is known. What else may answer at that address after the
// emulator has ended does not have it.
type sharedState struct {
	URL    string `json:"url"`
	Bucket string `json:"bucket"`
}

// findEmulator is the URL of the emulator that --emulator asks for; empty where it
// is not given.
func findEmulator(ctx context.Context, asked bool, bucket string) (url string, err error) {
	if !asked {
		return "", nil
	}
	if url, err = sharedEmulator(ctx, bucket); err != nil {
		return "", fmt.Errorf("emulator: %w", err)
	}
	return url, nil
}

// sharedEmulator is the URL of the emulator that this user has running on this
// machine, with the bucket in it. It starts one, as a process of its own, if
// there is none.
func sharedEmulator(ctx context.Context, bucket string) (string, error) {
	directory, err := stateDirectory()
	if err != nil {
		return "", err
	}
	unlock, err := lockFile(filepath.Join(directory, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock() // two that come first at once start one
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()

	file := filepath.Join(directory, "emulator.json")
	state, ok := readState(file)
	if !ok || !alive(ctx, state) {
		if state, err = startShared(ctx); err != nil {
			return "", err
		}
		text, err := json.Marshal(state)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return "", err
		}
	}
	return state.URL, ensureBucket(ctx, state.URL, bucket)
}

// readState reads the state file. One that can't be read, or leads off this
// machine, is as none: another is about to be written.
func readState(file string) (sharedState, bool) {
	var state sharedState
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &state) != nil {
		return sharedState{}, false
	}
	return state, strings.HasPrefix(state.URL, "http://127.0.0.1:")
}

// alive tells whether the emulator of the state file still answers.
func alive(ctx context.Context, state sharedState) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, state.URL+"/storage/v1/b/"+state.Bucket, nil)
	if err != nil {
		return false
	}
	direct := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	response, err := direct.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// startShared starts an emulator in a session of its own, so that it outlives
// this process and its terminal.
func startShared(ctx context.Context) (sharedState, error) {
	self, err := os.Executable()
	if err != nil {
		return sharedState{}, err
	}
	idle := sharedIdle.String()
	if set := os.Getenv(idleVariable); set != "" {
		idle = set
	}
	bucket := "gcslock-emulator-" + strings.ToLower(rand.Text())
	cmd := exec.Command(self, "emulator", "--idle", idle, "--bucket", bucket)
	detach(cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return sharedState{}, err
	}
	if err := cmd.Start(); err != nil {
		return sharedState{}, err
	}
	// It prints one line, and nothing after that: the pipe can be closed.
	defer stdout.Close()
	defer context.AfterFunc(ctx, func() { _ = stdout.Close() })()
	line, err := bufio.NewReader(io.LimitReader(stdout, 1<<10)).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), announcement)
	if !ok {
		_ = cmd.Process.Kill()
		return sharedState{}, fmt.Errorf("the emulator did not start: it said %q (%w)", line, err)
	}
	return sharedState{URL: url, Bucket: bucket}, cmd.Process.Release()
}

// ensureBucket creates the bucket if it isn't there.
func ensureBucket(ctx context.Context, url, bucket string) error {
	client, err := newClient(ctx, url)
	if err != nil {
		return err
	}
	defer client.Close()
	b := client.Bucket(bucket)
	if _, err := b.Attrs(ctx); !errors.Is(err, storage.ErrBucketNotExist) {
		return err
	}
	var api *googleapi.Error
	err = b.Create(ctx, "local", nil)
	if errors.As(err, &api) && api.Code == http.StatusConflict {
		return nil // somebody else was faster
	}
	return err
}
