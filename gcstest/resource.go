package gcstest

import (
	"encoding/json"
	"fmt"
	"maps"
)

// maxMetadata is how much custom metadata Cloud Storage takes for an object:
// names and values together, in bytes.
const maxMetadata = 8 << 10

// resource is the part of an object's JSON that the fake ignores or
// misunderstands.
type resource struct {
	Name          string          `json:"name"`
	Metadata      json.RawMessage `json:"metadata"` // nil if it is absent; null is the text null
	TemporaryHold *bool           `json:"temporaryHold"`
	EventHold     *bool           `json:"eventBasedHold"`

	values map[string]*string // Metadata, decoded; nil if it is absent or null
}

func decodeResource(body []byte) (resource, error) {
	var r resource
	if len(body) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Metadata == nil {
		return r, err
	}
	return r, json.Unmarshal(r.Metadata, &r.values)
}

// merge returns the metadata after an update. A patch changes the keys that it
// names, removes those that it sets to null, and all of them if metadata itself
// is null; a full update leaves nothing else.
func (r resource) merge(old map[string]string, whole bool) map[string]string {
	merged := map[string]string{}
	if !whole && (r.Metadata == nil || r.values != nil) {
		maps.Copy(merged, old)
	}
	for key, value := range r.values {
		if value == nil {
			delete(merged, key)
			continue
		}
		merged[key] = *value
	}
	return merged
}

func (r resource) metadata() map[string]string { return r.merge(nil, true) }

func (r resource) hold(v *version) {
	if r.TemporaryHold != nil {
		v.temporaryHold = *r.TemporaryHold
	}
	if r.EventHold != nil {
		v.eventHold = *r.EventHold
	}
}

func tooMuch(metadata map[string]string) *reply {
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
	}
	if size <= maxMetadata {
		return nil
	}
	return invalid(fmt.Sprintf("The custom metadata of %d bytes exceeds the maximum of %d bytes.", size, maxMetadata))
}
