// Workers is an HTTP service of which several instances run, with three
// background workers of which each runs on exactly one of them. /healthz shows
// which. docs/workers.md has it run, with two instances and a kill.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cloud.google.com/go/storage"

	"github.com/gcslock/gcslock/leases"
)

// stopLimit is for the requests and the workers to end in, each. Kubernetes
// gives 30 s, unless terminationGracePeriodSeconds says otherwise.
const stopLimit = 12 * time.Second

func main() {
	// SIGTERM is how Kubernetes ends a pod.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("workers", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address of the HTTP service")
	bucket := flags.String("bucket", "jobs", "bucket of the workers' leases")
	prefix := flags.String("prefix", "workers", "prefix of the lease objects")
	cfg := leases.Config{}
	flags.BoolVar(&cfg.Enabled, "leases", true, "false: run all workers here, without storage")
	flags.DurationVar(&cfg.TTL, "ttl", leases.DefaultTTL, "how long a lease outlives a killed instance")
	flags.DurationVar(&cfg.RenewInterval, "interval", leases.DefaultRenewInterval, "how often a lease is renewed")
	every := flags.Duration("every", time.Second, "the workers' pace")
	_ = flags.Parse(args) // exits on an error

	var handle *storage.BucketHandle
	if cfg.Enabled {
		// Reads STORAGE_EMULATOR_HOST, and else the default credentials.
		client, err := storage.NewClient(ctx)
		if err != nil {
			return fmt.Errorf("storage client: %w", err)
		}
		defer client.Close()
		handle = client.Bucket(*bucket)
	}
	m := leases.NewManager(handle, *prefix, cfg)
	for _, name := range []string{"consumer", "backfill", "cleanup"} {
		m.Go(ctx, name, worker(name, *every))
	}
	err := serve(ctx, *listen, m)
	if ctx.Err() == nil {
		return err // the service has failed; the leases end with the process, a ttl later
	}
	return errors.Join(err, m.Wait(stopLimit))
}

// worker stands for work in small pieces. It stops when its context ends.
func worker(name string, every time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		log := slog.With("worker", name, "token", leases.Token(ctx))
		log.Info("started")
		pace := time.NewTicker(every)
		defer pace.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				log.Info("stopped", "cause", context.Cause(ctx))
				return ctx.Err()
			case <-pace.C:
				// What is written here may carry the token, so that the place
				// that it is written to can refuse a worker that was paused.
				log.Debug("a piece of work", "n", n)
			}
		}
	}
}

// serve serves HTTP until ctx ends, and then until the requests under way are
// answered.
func serve(ctx context.Context, listen string, m *leases.Manager) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { health(w, m) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s as %s\n", listener.Addr(), m.HolderID())

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return server.Shutdown(limited)
}

// health shows the workers. A worker that goes on without its lease is what a
// restart of the process helps against; that another instance leads is healthy.
func health(w http.ResponseWriter, m *leases.Manager) {
	workers := m.Status()
	code := http.StatusOK
	for _, s := range workers {
		if s.State == leases.Lost {
			code = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	// A reader that has gone away needs no answer.
	_ = encoder.Encode(struct {
		Holder  string          `json:"holder"`
		Workers []leases.Status `json:"workers"`
	}{m.HolderID(), workers})
}
