package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
	"github.com/gcslock/gcslock/leases"
)

// TestHealth: leading, and following too, is healthy; a worker that goes on
// without its lease is not.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := gcstest.New("jobs")
		client, err := server.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		m := leases.NewManager(client.Bucket("jobs"), "workers", leases.Config{Enabled: true},
			leases.WithLogger(slog.New(slog.DiscardHandler)))
		is := func(want int) {
			t.Helper()
			response := httptest.NewRecorder()
			health(response, m)
			if response.Code != want {
				t.Errorf("%d %s, want %d", response.Code, response.Body, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m.Go(ctx, "stubborn", func(context.Context) error { time.Sleep(time.Hour); return nil })
		is(http.StatusOK)
		time.Sleep(time.Minute)
		is(http.StatusOK)
		server.Delete("jobs", "workers/stubborn")
		time.Sleep(time.Minute)
		is(http.StatusServiceUnavailable)
		cancel()
		if err := m.Wait(time.Hour); err != nil {
			t.Error(err)
		}
		is(http.StatusOK)
	})
}
