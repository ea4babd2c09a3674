package gcstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// reply is a whole reply.
type reply struct {
	status int
	header http.Header
	body   []byte
	cut    bool // the connection breaks half-way through the body
}

func (r *reply) date(now time.Time) {
	r.header.Set("Date", now.UTC().Format(http.TimeFormat))
}

func (r *reply) ok() bool { return r.status >= 200 && r.status < 300 }

func (r *reply) setBody(body []byte) {
	r.body = body
	r.header.Set("Content-Length", strconv.Itoa(len(body)))
}

// detail is one entry of the error list that Cloud Storage sends.
type detail struct {
	Message      string `json:"message"`
	Domain       string `json:"domain"`
	Reason       string `json:"reason"`
	LocationType string `json:"locationType,omitempty"`
	Location     string `json:"location,omitempty"`
}

func failure(status int, d detail) *reply {
	var body struct {
		Error struct {
			Code    int      `json:"code"`
			Message string   `json:"message"`
			Errors  []detail `json:"errors"`
		} `json:"error"`
	}
	if d.Domain == "" {
		d.Domain = "global"
	}
	body.Error.Code, body.Error.Message, body.Error.Errors = status, d.Message, []detail{d}
	r := &reply{status: status, header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}}
	r.setBody(mustEncode(body))
	return r
}

// mustEncode is for values that have been made here, or decoded from JSON.
func mustEncode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("gcstest: " + err.Error())
	}
	return b.Bytes()
}

func conditionNotMet() *reply {
	return failure(http.StatusPreconditionFailed, detail{
		Message: "At least one of the pre-conditions you specified did not hold.",
		Reason:  "conditionNotMet", LocationType: "header", Location: "If-Match",
	})
}

func objectMissing(key objectKey) *reply {
	return failure(http.StatusNotFound, detail{
		Message: fmt.Sprintf("No such object: %s/%s", key.bucket, key.object), Reason: "notFound",
	})
}

func bucketMissing() *reply {
	return failure(http.StatusNotFound, detail{
		Message: "The specified bucket does not exist.", Reason: "notFound",
	})
}

func invalidParameter(name, value string) *reply {
	return failure(http.StatusBadRequest, detail{
		Message: fmt.Sprintf("Invalid value for %s: %q.", name, value),
		Reason:  "invalidParameter", LocationType: "parameter", Location: name,
	})
}

func invalid(message string) *reply {
	return failure(http.StatusBadRequest, detail{Message: message, Reason: "invalid"})
}

// notServed is the reply where the stock server would do something that this
// one can't do strictly.
func notServed(what string) *reply {
	return failure(http.StatusNotImplemented, detail{
		Message: "gcstest: not served: " + what, Reason: "notImplemented",
	})
}

func rateExceeded(key objectKey) *reply {
	return failure(http.StatusTooManyRequests, detail{
		Message: fmt.Sprintf("The object %s/%s exceeded the rate limit for object mutation operations "+
			"(create, update, and delete). Please reduce your request rate. "+
			"See https://cloud.google.com/storage/docs/gcs429.", key.bucket, key.object),
		Domain: "usageLimits", Reason: "rateLimitExceeded",
	})
}

func retained(key objectKey, until time.Time) *reply {
	return failure(http.StatusForbidden, detail{
		Message: fmt.Sprintf("Object '%s/%s' is subject to bucket's retention policy or object retention "+
			"and cannot be deleted or overwritten until %s", key.bucket, key.object, until.Format(time.RFC3339Nano)),
		Reason: "retentionPolicyNotMet",
	})
}

func held(key objectKey, what string) *reply {
	return failure(http.StatusForbidden, detail{
		Message: fmt.Sprintf("Object '%s/%s' is under active %s hold and cannot be deleted, "+
			"overwritten or archived until hold is removed.", key.bucket, key.object, what),
		Reason: "objectUnderActiveHold",
	})
}

func forbidden(key objectKey, permission string) *reply {
	return failure(http.StatusForbidden, detail{
		Message: fmt.Sprintf("gcstest does not have %s access to the Google Cloud Storage object %s/%s. "+
			"Permission '%s' denied on resource (or it may not exist).", permission, key.bucket, key.object, permission),
		Reason: "forbidden",
	})
}
