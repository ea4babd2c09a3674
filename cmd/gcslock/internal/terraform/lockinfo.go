package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"time"

	"github.com/google/uuid"
)

// LockInfo is what a lock object says of its holder, in Terraform's form
// (LockInfo in its internal/states/statemgr).
type LockInfo struct {
	// ID is unique, and shown to nobody: the gcs backend shows the object's
	// generation instead, which is not known when this is written.
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   time.Time
	Path      string
}

// NewLockInfo is the information for a lock of ours. What the system does not
// tell of the user and the host is left out.
func NewLockInfo(operation, info, version, url string) LockInfo {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return LockInfo{
		ID: uuid.NewString(), Operation: operation, Info: info, Who: name + "@" + host,
		Version: version, Created: time.Now().UTC(), Path: url,
	}
}

// ParseLockInfo reads the body of a lock object.
func ParseLockInfo(body []byte) (LockInfo, error) {
	var info LockInfo
	if err := json.Unmarshal(body, &info); err != nil {
		return LockInfo{}, err
	}
	if info.ID == "" {
		return LockInfo{}, errors.New("it has no ID")
	}
	return info, nil
}

// versionLimit is how long a program may take to tell its version: wrappers
// that choose among versions may download one first.
const versionLimit = 30 * time.Second

// Version asks the program for its version. The user's arguments for other
// commands are kept from it, and it is kept from asking whether there is a newer
// one.
func Version(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "version", "-json")
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=", "TF_CLI_ARGS_version=")
	cmd.WaitDelay = time.Second // its children may keep the pipe open
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s version -json: %w", program, err)
	}
	var answer struct {
		Version string `json:"terraform_version"` // OpenTofu's, too
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", fmt.Errorf("%s version -json: %w", program, err)
	}
	return answer.Version, nil
}
