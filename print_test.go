package gcslock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain":               "plain",
		`a "b" \ c`:           `a "b" \ c`,
		"größer":              "größer",
		"a\nb":                `a\nb`,
		"\x1b[31mred":         `\x1b[31mred`,
		"\u202eright to left": `\u202eright to left`,
		"\xff":                `\xff`,
		"a\n\"b\"":            `a\n"b"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) is %q, want %q", in, got, want)
		}
	}
}

// hostile is a stranger's text that would break a log line and a terminal.
const hostile = "x\n\x1b[2J\u202e\r2026 INFO all is well"

func isClean(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// TestStrangersTexts: nothing that a stranger can write reaches an error or a
// log attribute as it is.
func TestStrangersTexts(t *testing.T) {
	obj := with(with(with(liveObject(), keyOwner, hostile), keyOperation, hostile), keyHost, hostile)
	l := &Lock{bucket: "b", object: "lock" + hostile, url: objectURL("b", "lock"+hostile)}
	held := &HeldError{Holder: l.info(obj, after(0))}
	server := &requestError{op: opRead, url: l.url, err: &googleapi.Error{Code: 500, Body: hostile}}
	for name, text := range map[string]string{
		"HeldError":     held.Error(),
		"log attribute": held.Holder.LogValue().String(),
		"server's body": server.Error(),
		"loss":          (&lossError{url: l.url, reason: "gone", cause: server}).Error(),
		"release":       (&releaseError{l.url, start, server}).Error(),
	} {
		if !isClean(text) {
			t.Errorf("%s is not clean: %q", name, text)
		}
	}
	if !strings.Contains(held.Error(), `\x1b[2J`) {
		t.Errorf("the owner can't be recognised in %q", held.Error())
	}
}

func TestSummary(t *testing.T) {
	long := strings.Repeat("ä", summaryLimit)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&googleapi.Error{Code: 403, Message: "no"}, "HTTP 403: no"},
		{&googleapi.Error{Code: 502, Body: "bad\n"}, "HTTP 502: bad"},
		{&googleapi.Error{Code: 503}, "HTTP 503: Service Unavailable"},
		{fmt.Errorf("get: %w", context.DeadlineExceeded), "no answer within its time limit"},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), "no answer within its time limit"},
		{errors.New(long), strings.Repeat("ä", summaryLimit/2) + "…"},
	} {
		if got := summary(tt.err); got != tt.want {
			t.Errorf("summary is %q, want %q", got, tt.want)
		}
	}
}
