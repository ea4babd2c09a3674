package grpctest

import (
	"context"
	"fmt"
	"net/http"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// Server is one client's way to a gcstest server, over gRPC and in memory. It
// works in a synctest bubble if it is made and closed within.
type Server struct {
	backend http.RoundTripper
	plan    plan
	network network
	grpc    *grpc.Server
	client  *storage.Client
}

// New returns a server, running, whose calls become requests to the backend: a
// gcstest server's Transport, or something that leads there. The options are
// for its client. Close it.
func New(ctx context.Context, backend http.RoundTripper, opts ...option.ClientOption) (*Server, error) {
	s := &Server{
		backend: backend,
		network: network{listener: bufconn.Listen(1 << 20)},
		// In a synctest bubble no call may outlive Close.
		grpc: grpc.NewServer(grpc.WaitForHandlers(true)),
	}
	s.grpc.RegisterService(&service, s)
	// It returns when the server is stopped, and has nothing to say then.
	go func() { _ = s.grpc.Serve(s.network.listener) }()
	var err error
	s.client, err = storage.NewGRPCClient(ctx, append([]option.ClientOption{
		option.WithEndpoint("passthrough:///grpctest"),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithContextDialer(s.network.dial)),
		// They would look for a project to report to.
		storage.WithDisabledClientMetrics(),
	}, opts...)...)
	if err != nil {
		s.grpc.Stop()
		return nil, fmt.Errorf("grpctest: %w", err)
	}
	return s, nil
}

// Bucket is a handle of the server's one client.
func (s *Server) Bucket(name string) *storage.BucketHandle { return s.client.Bucket(name) }

// Close ends the client and the server, and breaks off what is under way.
func (s *Server) Close() error {
	err := s.client.Close()
	s.grpc.Stop()
	return err
}
