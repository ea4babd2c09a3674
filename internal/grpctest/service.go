package grpctest

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

var service = grpc.ServiceDesc{
	ServiceName: "google.storage.v2.Storage",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unary("GetObject", "GetObjectRequest", (*Server).get),
		unary("UpdateObject", "UpdateObjectRequest", (*Server).update),
		unary("DeleteObject", "DeleteObjectRequest", (*Server).remove),
	},
	Streams: []grpc.StreamDesc{{
		// With ChunkSize 0 the client uploads in one such stream, without an
		// upload session.
		StreamName: "BidiWriteObject", ServerStreams: true, ClientStreams: true,
		Handler: func(s any, stream grpc.ServerStream) error { return s.(*Server).write(stream) },
	}},
}

func unary(method string, request protoreflect.Name, serve func(*Server, context.Context, message) (proto.Message, error)) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: method,
		Handler: func(s any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			m := newMessage(request)
			if err := decode(m.Interface()); err != nil {
				return nil, err
			}
			return serve(s.(*Server), ctx, m)
		},
	}
}

// preconditions are the fields of a request and the JSON API's parameters that
// mean the same. A field that is present counts, also with 0.
var preconditions = map[protoreflect.Name]string{
	"if_generation_match":         "ifGenerationMatch",
	"if_generation_not_match":     "ifGenerationNotMatch",
	"if_metageneration_match":     "ifMetagenerationMatch",
	"if_metageneration_not_match": "ifMetagenerationNotMatch",
}

// understood are a request's own fields and the preconditions.
func understood(fields ...protoreflect.Name) []protoreflect.Name {
	for name := range preconditions {
		fields = append(fields, name)
	}
	return fields
}

func (s *Server) get(ctx context.Context, m message) (proto.Message, error) {
	if err := m.only(understood("bucket", "object", "generation", "read_mask")...); err != nil {
		return nil, err
	}
	c, err := newCall(http.MethodGet, m.text("bucket"), m.text("object"))
	if err != nil {
		return nil, err
	}
	c.demand(m)
	c.selectGeneration(m)
	return s.object(ctx, c)
}

func (s *Server) update(ctx context.Context, m message) (proto.Message, error) {
	object := m.sub("object")
	if err := m.only(understood("object", "update_mask")...); err != nil {
		return nil, err
	}
	if err := object.only("name", "bucket", "generation", "metadata"); err != nil {
		return nil, err
	}
	c, err := newCall(http.MethodPatch, object.text("bucket"), object.text("name"))
	if err != nil {
		return nil, err
	}
	c.demand(m)
	c.selectGeneration(object)
	mask, ok := m.sub("update_mask").Interface().(*fieldmaskpb.FieldMask)
	if !ok {
		return nil, status.Error(codes.InvalidArgument, "grpctest: an update without its mask")
	}
	values := object.texts("metadata")
	changes := make(map[string]*string)
	for _, path := range mask.GetPaths() {
		key, ok := strings.CutPrefix(path, "metadata.")
		if !ok {
			return nil, status.Errorf(codes.Unimplemented, "grpctest: an update of %s", path)
		}
		changes[key] = nil // removed, unless there is a value
		if value, ok := values[key]; ok {
			changes[key] = &value
		}
	}
	if err := c.send(map[string]any{"metadata": changes}); err != nil {
		return nil, err
	}
	return s.object(ctx, c)
}

func (s *Server) remove(ctx context.Context, m message) (proto.Message, error) {
	if err := m.only(understood("bucket", "object", "generation")...); err != nil {
		return nil, err
	}
	c, err := newCall(http.MethodDelete, m.text("bucket"), m.text("object"))
	if err != nil {
		return nil, err
	}
	c.demand(m)
	c.selectGeneration(m)
	if _, err := s.do(ctx, c); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// write takes an upload, which ends with finish_write. It is applied only when
// it is there as a whole.
func (s *Server) write(stream grpc.ServerStream) error {
	var spec message
	var content []byte
	for first := true; ; first = false {
		m := newMessage("BidiWriteObjectRequest")
		if err := stream.RecvMsg(m.Interface()); err == io.EOF {
			return status.Error(codes.InvalidArgument, "grpctest: an upload without its end")
		} else if err != nil {
			return err
		}
		// flush and state_lookup ask for nothing that the reply to the last part
		// does not tell.
		fields := []protoreflect.Name{"write_offset", "checksummed_data", "object_checksums", "finish_write", "state_lookup", "flush"}
		if first {
			spec = m.sub("write_object_spec")
			fields = append(fields, "write_object_spec")
		}
		if err := m.only(fields...); err != nil {
			return err
		}
		data := m.sub("checksummed_data")
		switch {
		case m.number("write_offset") != int64(len(content)):
			return status.Errorf(codes.OutOfRange, "grpctest: content at %d, not at %d", m.number("write_offset"), len(content))
		case data.has("crc32c") && data.sum("crc32c") != checksum(data.bytes("content")):
			return status.Error(codes.InvalidArgument, "grpctest: a part that was damaged")
		}
		content = append(content, data.bytes("content")...)
		if !m.truth("finish_write") {
			continue
		}
		if sums := m.sub("object_checksums"); sums.has("crc32c") && sums.sum("crc32c") != checksum(content) {
			return status.Error(codes.InvalidArgument, "grpctest: an upload that was damaged")
		}
		object, err := s.create(stream.Context(), spec, content)
		if err != nil {
			return err
		}
		reply := newMessage("BidiWriteObjectResponse")
		reply.set("resource", object)
		return stream.SendMsg(reply.Interface())
	}
}

func (s *Server) create(ctx context.Context, spec message, content []byte) (proto.Message, error) {
	resource := spec.sub("resource")
	if err := spec.only(understood("resource", "appendable")...); err != nil {
		return nil, err
	}
	if err := resource.only("name", "bucket", "content_type", "cache_control", "metadata", "event_based_hold"); err != nil {
		return nil, err
	}
	if spec.truth("appendable") || resource.truth("event_based_hold") {
		return nil, status.Error(codes.Unimplemented, "grpctest: an appendable upload, or one with a hold")
	}
	c, err := newCall(http.MethodPost, resource.text("bucket"), "")
	if err != nil {
		return nil, err
	}
	c.url.Path = "/upload" + c.url.Path
	c.query.Set("uploadType", "multipart")
	c.demand(spec)
	err = c.upload(map[string]any{
		"name": resource.text("name"), "contentType": resource.text("content_type"),
		"cacheControl": resource.text("cache_control"), "metadata": resource.texts("metadata"),
	}, resource.text("content_type"), content)
	if err != nil {
		return nil, err
	}
	return s.object(ctx, c)
}

// object is the object that the backend replies with.
func (s *Server) object(ctx context.Context, c *call) (proto.Message, error) {
	body, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	var r resource
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, status.Errorf(codes.Internal, "grpctest: %v", err)
	}
	return r.message().Interface(), nil
}

// do sends the call as a request of the JSON API, unless a fault is there first.
func (s *Server) do(ctx context.Context, c *call) ([]byte, error) {
	if err := s.plan.take(c.method); err != nil {
		return nil, err
	}
	c.url.RawQuery = c.query.Encode()
	request, err := http.NewRequestWithContext(ctx, c.method, c.url.String(), c.body)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpctest: %v", err)
	}
	request.Header = c.header
	response, err := s.backend.RoundTrip(request)
	if err != nil {
		return nil, broken(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, broken(ctx, err)
	case response.StatusCode >= 300:
		return nil, refusal(response.StatusCode, body)
	}
	return body, nil
}

func checksum(content []byte) uint32 {
	return crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
}

func bucketName(resource string) (string, error) {
	name, ok := strings.CutPrefix(resource, "projects/_/buckets/")
	if !ok || slices.Contains([]string{"", ".", ".."}, name) || strings.Contains(name, "/") {
		return "", status.Errorf(codes.InvalidArgument, "grpctest: bucket %q", resource)
	}
	return url.PathEscape(name), nil
}
