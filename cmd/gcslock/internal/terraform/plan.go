package terraform

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields in a plan file that tell where its state is, of
// planfile.proto in Terraform's internal/plans/planproto. OpenTofu has the same.
const (
	planBackend      = 13
	backendType      = 1
	backendConfig    = 2
	backendWorkspace = 3
	dynamicMsgpack   = 1
)

// planLimit is more than any plan has.
const planLimit = 1 << 30

// CheckPlan refuses to apply a saved plan for another state: the state that is
// changed then is the plan's and not the directory's. Files that can't be read as
// plans, such as encrypted ones, are left to the program.
func (c Command) CheckPlan(want State) error {
	if c.Name != "apply" {
		return nil
	}
	name := c.args[len(c.args)-1]
	if strings.HasPrefix(name, "-") {
		return nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.chdir, name)
	}
	kind, have, ok := readPlan(name)
	switch {
	case !ok:
		return nil
	case kind != "gcs":
		return fmt.Errorf("the plan %s is for the backend %q, and a lock at %s would not protect it", name, kind, want.location())
	case have.Workspace != want.Workspace:
		return fmt.Errorf("the plan %s is for the workspace %q, not %q", name, have.Workspace, want.Workspace)
	case have.Bucket != want.Bucket || have.Lock() != want.Lock():
		return fmt.Errorf("the plan %s is for the state at %s, and a lock at %s would not protect it", name, have.location(), want.location())
	}
	return nil
}

// readPlan is the backend of a plan file, its type and where its state is.
func readPlan(name string) (kind string, state State, ok bool) {
	archive, err := zip.OpenReader(name)
	if err != nil {
		return "", State{}, false
	}
	defer archive.Close()
	file, err := archive.Open("tfplan")
	if err != nil {
		return "", State{}, false
	}
	defer file.Close()
	plan, err := io.ReadAll(io.LimitReader(file, planLimit))
	if err != nil {
		return "", State{}, false
	}
	backend := field(plan, planBackend)
	if backend == nil {
		return "", State{}, false
	}
	config := texts(field(field(backend, backendConfig), dynamicMsgpack))
	return string(field(backend, backendType)), State{
		Bucket: config["bucket"], Prefix: config["prefix"], Workspace: string(field(backend, backendWorkspace)),
	}, true
}

// field is the last value of a field of bytes in a protocol buffer, or nil.
func field(message []byte, number protowire.Number) (value []byte) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil
		}
		message = message[size:]
		if size = protowire.ConsumeFieldValue(n, kind, message); size < 0 {
			return nil
		}
		if n == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message)
		}
		message = message[size:]
	}
	return value
}

// texts are the attributes that are strings in a msgpack map, as far as it can be
// read (https://github.com/msgpack/msgpack/blob/master/spec.md). A backend's
// configuration has strings, nil, and lists of strings.
func texts(packed []byte) map[string]string {
	r := msgpack{packed}
	found := make(map[string]string)
	for n := r.length(0x80, 0xde); n > 0; n-- {
		key, ok := r.text()
		if !ok {
			break
		}
		if value, ok := r.text(); ok {
			found[key] = value
			continue
		}
		if len(r.rest) > 0 && r.rest[0] == 0xc0 { // nil
			r.rest = r.rest[1:]
			continue
		}
		for n := r.length(0x90, 0xdc); n > 0; n-- {
			r.text()
		}
	}
	return found
}

type msgpack struct{ rest []byte }

// length is that of a map or a list: in the low bits of its first byte, or in the
// two bytes after it.
func (r *msgpack) length(short, long byte) int {
	switch {
	case len(r.rest) >= 1 && r.rest[0]&0xf0 == short:
		n := int(r.rest[0] & 0x0f)
		r.rest = r.rest[1:]
		return n
	case len(r.rest) >= 3 && r.rest[0] == long:
		n := int(binary.BigEndian.Uint16(r.rest[1:]))
		r.rest = r.rest[3:]
		return n
	}
	return 0
}

func (r *msgpack) text() (string, bool) {
	var head, n int
	switch b := r.rest; {
	case len(b) >= 1 && b[0]&0xe0 == 0xa0:
		head, n = 1, int(b[0]&0x1f)
	case len(b) >= 2 && b[0] == 0xd9:
		head, n = 2, int(b[1])
	case len(b) >= 3 && b[0] == 0xda:
		head, n = 3, int(binary.BigEndian.Uint16(b[1:]))
	default:
		return "", false
	}
	if len(r.rest) < head+n {
		return "", false
	}
	text := string(r.rest[head : head+n])
	r.rest = r.rest[head+n:]
	return text, true
}
