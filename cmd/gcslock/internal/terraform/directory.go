package terraform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A State is a workspace's state in a gcs backend.
type State struct{ Bucket, Prefix, Workspace string }

// Object is the name of the state's object.
func (s State) Object() string { return s.object(".tfstate") }

// Lock is the name of its lock object.
func (s State) Lock() string { return s.object(Suffix) }

// object is what the backend makes of the prefix (its backend.go).
func (s State) object(suffix string) string {
	return path.Join(strings.TrimLeft(s.Prefix, "/"), s.Workspace+suffix)
}

// location is the backend's, as the arguments of gcslock terraform have it.
func (s State) location() string {
	return strings.TrimSuffix("gs://"+s.Bucket+"/"+path.Dir(s.Lock()), "/.")
}

// dataDirectory is where init has noted the backend and the workspace.
func (c Command) dataDirectory(getenv func(string) string) string {
	directory := getenv("TF_DATA_DIR")
	if directory == "" {
		directory = ".terraform"
	}
	if filepath.IsAbs(directory) {
		return directory
	}
	return filepath.Join(c.chdir, directory)
}

// Workspace is the one that the command works in: TF_WORKSPACE, or else the one
// that is selected in the directory.
func (c Command) Workspace(getenv func(string) string) (string, error) {
	name := getenv("TF_WORKSPACE")
	if name == "" {
		file := filepath.Join(c.dataDirectory(getenv), "environment")
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("the selected workspace: %w", err)
		}
		name = strings.TrimSpace(string(text))
	}
	if name == "" {
		name = "default"
	}
	return name, CheckWorkspace(name)
}

// CheckWorkspace refuses what Terraform refuses.
func CheckWorkspace(name string) error {
	if name == "" || name != url.PathEscape(name) {
		return fmt.Errorf("%q is no name of a workspace", name)
	}
	return nil
}

// CheckBackend refuses a directory whose backend does not have its state where
// want is: without its own locking, the command would have none at all. It
// returns the backend's own endpoint, if it has one.
func (c Command) CheckBackend(want State, getenv func(string) string) (endpoint string, err error) {
	file := filepath.Join(c.dataDirectory(getenv), "terraform.tfstate")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no %s, which would tell where the state is: run %s init first", file, filepath.Base(c.Program))
	}
	if err != nil {
		return "", err
	}
	var noted struct {
		Backend struct {
			Type   string
			Config json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &noted); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if noted.Backend.Type != "gcs" {
		return "", fmt.Errorf("the state's backend is %q in %s, and a lock at %s would not protect it", noted.Backend.Type, file, want.location())
	}
	var config struct {
		Bucket, Prefix string
		Endpoint       string `json:"storage_custom_endpoint"`
	}
	if err := json.Unmarshal(noted.Backend.Config, &config); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	have := State{config.Bucket, config.Prefix, want.Workspace}
	if have.Bucket != want.Bucket || have.Lock() != want.Lock() {
		return "", fmt.Errorf("the state is at %s, as %s has it, and a lock at %s would not protect it", have.location(), file, want.location())
	}
	return config.Endpoint, nil
}
