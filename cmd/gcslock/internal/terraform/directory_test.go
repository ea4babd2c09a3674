package terraform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestObjects: the names are those that the backend makes.
func TestObjects(t *testing.T) {
	for _, tt := range []struct{ prefix, workspace, state, lock, location string }{
		{"", "default", "default.tfstate", "default.tflock", "gs://b"},
		{"/", "default", "default.tfstate", "default.tflock", "gs://b"},
		{"team/app", "default", "team/app/default.tfstate", "team/app/default.tflock", "gs://b/team/app"},
		{"//team//app/", "prod", "team/app/prod.tfstate", "team/app/prod.tflock", "gs://b/team/app"},
	} {
		s := State{"b", tt.prefix, tt.workspace}
		if s.Object() != tt.state || s.Lock() != tt.lock || s.location() != tt.location {
			t.Errorf("%+v: %s, %s, %s", s, s.Object(), s.Lock(), s.location())
		}
	}
}

// inDirectory is a command in a directory with these files.
func inDirectory(t *testing.T, files map[string]string) (c Command, directory string) {
	t.Helper()
	directory = t.TempDir()
	for name, text := range files {
		name = filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Parse([]string{"tofu", "-chdir=" + directory, "apply"}), directory
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestWorkspace(t *testing.T) {
	c, directory := inDirectory(t, map[string]string{
		".terraform/environment": "chosen\n", "data/environment": "other", "bad/environment": "a b", "empty/environment": "",
	})
	for _, tt := range []struct {
		environment []string
		want, fails string
	}{
		{nil, "chosen", ""},
		{[]string{"TF_WORKSPACE", "set"}, "set", ""},
		{[]string{"TF_WORKSPACE", "a/b"}, "", "a/b"},
		{[]string{"TF_DATA_DIR", "data"}, "other", ""},
		{[]string{"TF_DATA_DIR", filepath.Join(directory, "data")}, "other", ""},
		{[]string{"TF_DATA_DIR", "empty"}, "default", ""},
		{[]string{"TF_DATA_DIR", "none"}, "default", ""},
		{[]string{"TF_DATA_DIR", "bad"}, "", "a b"},
	} {
		got, err := c.Workspace(environment(tt.environment...))
		if (err != nil) != (tt.fails != "") || err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%v: %q, %v", tt.environment, got, err)
		}
	}
}

func TestCheckBackend(t *testing.T) {
	c, _ := inDirectory(t, map[string]string{
		".terraform/terraform.tfstate": `{"version": 3, "backend": {"type": "gcs", "config": {"bucket": "b", "prefix": "/team/app/", "storage_custom_endpoint": "e"}}}`,
		"bare/terraform.tfstate":       `{"version": 3, "backend": {"type": "gcs", "config": {"bucket": "b", "prefix": null, "storage_custom_endpoint": null}}}`,
		"s3/terraform.tfstate":         `{"version": 3, "backend": {"type": "s3", "config": {"bucket": "b"}}}`,
		"old/terraform.tfstate":        `{"version": 3}`,
		"garbled/terraform.tfstate":    `{`,
		"strange/terraform.tfstate":    `{"backend": {"type": "gcs", "config": 1}}`,
	})
	for _, tt := range []struct {
		data  string
		want  State
		fails string // empty: it is the right one
	}{
		{"", State{"b", "team/app", "default"}, ""},
		{"", State{"b", "team/app/", "prod"}, ""},
		{"", State{"c", "team/app", "default"}, "the state is at gs://b/team/app, as "},
		{"", State{"b", "team", "default"}, "a lock at gs://b/team would not protect it"},
		{"", State{"b", "", "default"}, "a lock at gs://b would not protect it"},
		{"bare", State{"b", "", "default"}, ""},
		{"bare", State{"b", "team", "default"}, "the state is at gs://b, as "},
		{"s3", State{"b", "", "default"}, `the state's backend is "s3"`},
		{"old", State{"b", "", "default"}, `the state's backend is ""`},
		{"none", State{"b", "", "default"}, "run tofu init first"},
		{"garbled", State{"b", "", "default"}, "unexpected end"},
		{"strange", State{"b", "", "default"}, "cannot unmarshal"},
	} {
		endpoint, err := c.CheckBackend(tt.want, environment("TF_DATA_DIR", tt.data))
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%q, %v: %v", tt.data, tt.want, err)
		}
		if err == nil && (endpoint == "e") != (tt.data == "") {
			t.Errorf("%q: endpoint %q", tt.data, endpoint)
		}
	}
}
