package terraform

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// packed is a string in msgpack, in the shortest form that fits.
func packed(text string) string {
	switch n := len(text); {
	case n < 32:
		return string([]byte{0xa0 | byte(n)}) + text
	case n < 256:
		return string([]byte{0xd9, byte(n)}) + text
	default:
		return string([]byte{0xda, byte(n >> 8), byte(n)}) + text
	}
}

func bytesField(number protowire.Number, value string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value))
}

// planFile is a saved plan, as far as it matters here.
func planFile(t *testing.T, kind, config, workspace string) string {
	t.Helper()
	backend := bytesField(backendType, kind) + bytesField(backendConfig, bytesField(dynamicMsgpack, config)) + bytesField(backendWorkspace, workspace)
	version := string(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3))
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	w, err := archive.Create("tfplan")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(version + bytesField(14, "1.11.4") + bytesField(planBackend, backend))); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func TestCheckPlan(t *testing.T) {
	long, longer := strings.Repeat("l", 40), strings.Repeat("m", 300)
	config := func(bucket, prefix string) string {
		return "\x85" + packed("access_token") + "\xc0" + packed("bucket") + packed(bucket) +
			packed("delegates") + "\x92" + packed("a") + packed("b") + packed("prefix") + prefix + packed("z") + packed("z")
	}
	c, directory := inDirectory(t, map[string]string{
		"right":  planFile(t, "gcs", config("b", packed("/team/app/")), "default"),
		"bare":   planFile(t, "gcs", config("b", "\xc0"), "default"),
		"long":   planFile(t, "gcs", config("b", packed(long)), "default"),
		"longer": planFile(t, "gcs", config("b", packed(longer)), "default"),
		"map16":  planFile(t, "gcs", "\xde\x00\x05"+config("b", packed("team/app"))[1:], "default"),
		"s3":     planFile(t, "s3", config("b", packed("team/app")), "default"),
		"cut":    planFile(t, "gcs", "\x85", "default"),
		"local":  planFile(t, "local", "\x80", "default"),
		"no":     "plan",
	})
	for _, tt := range []struct {
		line  string
		want  State
		fails string
	}{
		{"apply right", State{"b", "team/app", "default"}, ""},
		{"apply -auto-approve right", State{"b", "team/app", "default"}, ""},
		{"apply " + directory + "/right", State{"b", "team/app", "default"}, ""},
		{"apply right", State{"b", "team/app", "prod"}, `right is for the workspace "default", not "prod"`},
		{"apply right", State{"b", "team", "default"}, "right is for the state at gs://b/team/app, and a lock at gs://b/team would not"},
		{"apply right", State{"c", "team/app", "default"}, "right is for the state at gs://b/team/app"},
		{"apply bare", State{"b", "", "default"}, ""},
		{"apply bare", State{"b", "team/app", "default"}, "bare is for the state at gs://b,"},
		{"apply long", State{"b", long, "default"}, ""},
		{"apply longer", State{"b", longer, "default"}, ""},
		{"apply map16", State{"b", "team/app", "default"}, ""},
		{"apply map16", State{"b", "team", "default"}, "map16 is for"},
		{"apply s3", State{"b", "team/app", "default"}, `s3 is for the backend "s3"`},
		{"apply local", State{"b", "team/app", "default"}, `local is for the backend "local"`},
		{"apply cut", State{"b", "team/app", "default"}, "cut is for the state at gs://,"},
		{"apply nothing", State{"c", "", "default"}, ""},
		{"apply no", State{"c", "", "default"}, ""},
		{"apply", State{"c", "", "default"}, ""},
		{"apply -auto-approve", State{"c", "", "default"}, ""},
		{"plan right", State{"c", "", "default"}, ""},
	} {
		err := Parse(append([]string{"tofu", "-chdir=" + c.chdir}, strings.Fields(tt.line)...)).CheckPlan(tt.want)
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s for %v: %v", tt.line, tt.want, err)
		}
	}
}

// FuzzPlan: a plan may be anybody's file.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("\x83\xa6bucket\xa1b\xa6prefix\xc0"))
	f.Add([]byte(bytesField(planBackend, bytesField(backendType, "gcs"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for key, value := range texts(data) {
			if !bytes.Contains(data, []byte(key)) || !bytes.Contains(data, []byte(value)) {
				t.Errorf("%q: %q", key, value)
			}
		}
		if value := field(data, planBackend); !bytes.Contains(data, value) {
			t.Errorf("field %q", value)
		}
	})
}
