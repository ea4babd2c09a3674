package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
	transport "google.golang.org/api/transport/http"
)

// newClient is a storage client as every Google tool has it: Application
// Default Credentials, or STORAGE_EMULATOR_HOST. An emulator's URL, if given,
// comes before both.
func newClient(ctx context.Context, emulator string) (*storage.Client, error) {
	return openClient(ctx, emulatorOptions(emulator)...)
}

// newWatchfulClient is newClient whose replies tell the server's time, too.
func newWatchfulClient(ctx context.Context, emulator string) (*storage.Client, *serverTime, error) {
	server := new(serverTime)
	base := http.DefaultTransport.(*http.Transport).Clone()
	opts := emulatorOptions(emulator)
	var rt http.RoundTripper = dateReader{base, server}
	if emulator == "" && os.Getenv("STORAGE_EMULATOR_HOST") == "" {
		var err error
		rt, err = transport.NewTransport(ctx, rt, option.WithScopes(storage.ScopeFullControl))
		if err != nil {
			return nil, nil, fmt.Errorf("storage client: %w", err)
		}
	}
	// The storage client finds the emulator's address in the environment also
	// where it is given a transport.
	client, err := openClient(ctx, append(opts, option.WithHTTPClient(&http.Client{Transport: rt}))...)
	return client, server, err
}

func emulatorOptions(emulator string) []option.ClientOption {
	if emulator == "" {
		return nil
	}
	return []option.ClientOption{option.WithEndpoint(emulator + "/storage/v1/"), option.WithoutAuthentication()}
}

func openClient(ctx context.Context, opts ...option.ClientOption) (*storage.Client, error) {
	// Contents are read as the JSON API has them: emulators have nothing at the
	// other one's address.
	client, err := storage.NewClient(ctx, append(opts, storage.WithJSONReads())...)
	if err != nil {
		return nil, fmt.Errorf("storage client: %w", err)
	}
	return client, nil
}
