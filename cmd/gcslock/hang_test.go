package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// TestHungRequests end a look: nobody waits at night for a server that does not
// answer.
func TestHungRequests(t *testing.T) {
	for name, look := range map[string]func(ctx context.Context, l *looker) error{
		"status": func(ctx context.Context, l *looker) error {
			_, err := l.look(ctx)
			return err
		},
		"list":  func(ctx context.Context, l *looker) error { return (&lister{looker: l}).list(ctx) },
		"break": func(ctx context.Context, l *looker) error { return (&breaker{looker: l, id: 1}).run(ctx) },
		"watch": func(ctx context.Context, l *looker) error {
			if err := (&watcher{looker: l}).step(ctx); err != nil {
				return err
			}
			return errors.New("told") // it goes on
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := gcstest.New("jobs")
			server.Put("jobs", "default.tflock", gcstest.Object{Content: []byte("{}")})
			server.Inject(gcstest.Fault{Do: gcstest.Hang()})
			l, out := lookerOn(t, server, "default.tflock")
			begun := time.Now()
			if err := look(t.Context(), l); err == nil || !strings.Contains(out.String(), "no answer within its time limit") {
				t.Errorf("%s: %v, told %q", name, err, out.String())
			}
			if took := time.Since(begun); took != lookLimit {
				t.Errorf("%s: took %v, want %v", name, took, lookLimit)
			}
		})
	}
}

// lookerOn looks at an object of a server in a bubble. What it tells and shows
// is in out.
func lookerOn(t *testing.T, server *gcstest.Server, object string) (l *looker, out *strings.Builder) {
	client, err := server.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	out = new(strings.Builder)
	return &looker{
		teller: &teller{lock: "gs://jobs/" + object, out: out}, screen: newScreen(out, false),
		bucket: "jobs", object: object, client: client, server: new(serverTime),
	}, out
}
