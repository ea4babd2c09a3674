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

// Suffix ends the names of lock objects: PREFIX/WORKSPACE.tflock
// (https://developer.hashicorp.com/terraform/language/backend/gcs).
const Suffix = ".tflock"

// LockInfo is what a lock object's content says of its holder (LockInfo in
// Terraform's internal/states/statemgr). The names in JSON are gcslock's own.
type LockInfo struct {
	// ID is unique, and what force-unlock takes is another one: the object's
	// generation, which is not known when this is written.
	ID        string `json:"id,omitempty"`
	Operation string `json:"operation,omitempty"`
	Info      string `json:"info,omitempty"`
	Who       string `json:"who,omitempty"`
	Version   string `json:"version,omitempty"`
	Created   string `json:"created,omitempty"` // as written: a stranger's text
	Path      string `json:"path,omitempty"`
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
		Version: version, Created: time.Now().UTC().Format(time.RFC3339Nano), Path: url,
	}
}

// Content is that of a lock object, with Terraform's names.
func (i LockInfo) Content() ([]byte, error) {
	return json.Marshal(struct{ ID, Operation, Info, Who, Version, Created, Path string }(i))
}

// ParseLockInfo reads the content of a lock object. Its names differ from ours by
// their capitals alone, which do not matter here.
func ParseLockInfo(content []byte) (*LockInfo, error) {
	var info LockInfo
	if err := json.Unmarshal(content, &info); err != nil {
		return nil, fmt.Errorf("it is not the JSON that Terraform writes: %w", err)
	}
	if info.ID == "" {
		return nil, errors.New("it has no ID")
	}
	return &info, nil
}

// CreatedAt is Created as a time; zero where it is none.
func (i LockInfo) CreatedAt() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, i.Created)
	return t
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
