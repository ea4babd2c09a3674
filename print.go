package gcslock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// printable makes a stranger's text safe for a log line and a terminal: what
// is not printable is escaped as in a Go string. Text without such characters
// stays as it is.
func printable(s string) string {
	quoted := strconv.Quote(s)
	if len(quoted) == len(s)+2 {
		return s
	}
	// Quotes and backslashes do no harm outside a string literal.
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// objectURL is how people name the object, safe to print.
func objectURL(bucket, object string) string {
	return "gs://" + printable(bucket) + "/" + printable(object)
}

// summaryLimit bounds what an error shows of a server's words, in bytes. Some
// proxies answer with whole pages.
const summaryLimit = 300

// summary is a request's error on one line: the server's own message where it
// gave one.
func summary(err error) string {
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		text = "no answer within its time limit"
	}
	var api *googleapi.Error
	if errors.As(err, &api) {
		text = api.Message
		if text == "" {
			text = api.Body
		}
		if text == "" {
			text = http.StatusText(api.Code)
		}
		text = fmt.Sprintf("HTTP %d: %s", api.Code, strings.TrimSpace(text))
	}
	if len(text) > summaryLimit {
		cut := summaryLimit
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return printable(text)
}
