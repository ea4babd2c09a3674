package main

import (
	"context"
	"fmt"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// newClient is a storage client as every Google tool has it: Application
// Default Credentials, or STORAGE_EMULATOR_HOST. An emulator's URL, if given,
// comes before both.
func newClient(ctx context.Context, emulator string) (*storage.Client, error) {
	var opts []option.ClientOption
	if emulator != "" {
		opts = append(opts, option.WithEndpoint(emulator+"/storage/v1/"), option.WithoutAuthentication())
	}
	client, err := storage.NewClient(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("storage client: %w", err)
	}
	return client, nil
}
