package gcstest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// conditions are the preconditions of a request; nil where it has none.
type conditions struct {
	generationMatch, generationNotMatch         *int64
	metagenerationMatch, metagenerationNotMatch *int64
}

// parseConditions reads them from the parameters, and from the headers that
// downloads in the XML API's style have instead. It refuses a condition that
// would be ignored: a strict server that overlooks one is worse than none.
func parseConditions(query url.Values, header http.Header) (conditions, *reply) {
	var c conditions
	for name, to := range map[string]**int64{
		"ifGenerationMatch":        &c.generationMatch,
		"ifGenerationNotMatch":     &c.generationNotMatch,
		"ifMetagenerationMatch":    &c.metagenerationMatch,
		"ifMetagenerationNotMatch": &c.metagenerationNotMatch,
	} {
		value, present := query.Get(name), query.Has(name)
		if !present {
			value = header.Get(xmlCondition[name])
			present = value != ""
		}
		if !present {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return c, invalidParameter(name, value)
		}
		*to = &n
	}
	for name := range query {
		if strings.HasPrefix(name, "ifSource") {
			return c, notServed("the precondition " + name)
		}
	}
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		if header.Get(name) != "" {
			return c, notServed("the precondition " + name)
		}
	}
	return c, nil
}

// unconditional refuses conditions on anything but objects, which the fake
// would ignore.
func unconditional(query url.Values) *reply {
	for name := range query {
		if strings.HasPrefix(name, "ifMetageneration") || strings.HasPrefix(name, "ifGeneration") {
			return notServed("the precondition " + name + " on this kind of request")
		}
	}
	return nil
}

var xmlCondition = map[string]string{
	"ifGenerationMatch":        "X-Goog-If-Generation-Match",
	"ifGenerationNotMatch":     "X-Goog-If-Generation-Not-Match",
	"ifMetagenerationMatch":    "X-Goog-If-Metageneration-Match",
	"ifMetagenerationNotMatch": "X-Goog-If-Metageneration-Not-Match",
}

// check compares with a version, or with none: no version has generation 0. It
// returns nil if the conditions hold.
func (c conditions) check(v *version, reading bool) *reply {
	var generation, metageneration int64
	if v != nil {
		generation, metageneration = v.generation, v.metageneration
	}
	if differs(c.generationMatch, generation) || differs(c.metagenerationMatch, metageneration) {
		return conditionNotMet()
	}
	if equals(c.generationNotMatch, generation) || equals(c.metagenerationNotMatch, metageneration) {
		if reading {
			return &reply{status: http.StatusNotModified, header: http.Header{}}
		}
		return conditionNotMet()
	}
	return nil
}

func differs(want *int64, have int64) bool { return want != nil && *want != have }
func equals(not *int64, have int64) bool   { return not != nil && *not == have }
