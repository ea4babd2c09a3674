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
			client, err := server.Client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var out strings.Builder
			l := &looker{
				teller: &teller{lock: "gs://jobs/default.tflock", out: &out}, screen: newScreen(&out, false),
				bucket: "jobs", object: "default.tflock", client: client, server: new(serverTime),
			}
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
