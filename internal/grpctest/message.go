package grpctest

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "cloud.google.com/go/storage" // registers the messages
)

const storagePackage = "google.storage.v2."

// A message is one of google.storage.v2, whose fields go by the names in
// storage.proto. A name that isn't there is a mistake in this package, and
// panics.
type message struct{ protoreflect.Message }

func newMessage(name protoreflect.Name) message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(storagePackage + protoreflect.FullName(name))
	if err != nil {
		panic(fmt.Sprintf("grpctest: %s: %v", name, err)) // the storage client has dropped it
	}
	return message{kind.New()}
}

func (m message) field(name protoreflect.Name) protoreflect.FieldDescriptor {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil {
		panic(fmt.Sprintf("grpctest: %s has no field %s", m.Descriptor().Name(), name))
	}
	return field
}

func (m message) has(name protoreflect.Name) bool    { return m.Has(m.field(name)) }
func (m message) text(name protoreflect.Name) string { return m.Get(m.field(name)).String() }
func (m message) number(name protoreflect.Name) int64 {
	return m.Get(m.field(name)).Int()
}
func (m message) truth(name protoreflect.Name) bool { return m.Get(m.field(name)).Bool() }
func (m message) bytes(name protoreflect.Name) []byte {
	return m.Get(m.field(name)).Bytes()
}
func (m message) sum(name protoreflect.Name) uint32 { return uint32(m.Get(m.field(name)).Uint()) }
func (m message) sub(name protoreflect.Name) message {
	return message{m.Get(m.field(name)).Message()}
}

// texts is a map of strings.
func (m message) texts(name protoreflect.Name) map[string]string {
	all := make(map[string]string)
	m.Get(m.field(name)).Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		all[k.String()] = v.String()
		return true
	})
	return all
}

// set takes what protoreflect.ValueOf does, or a message.
func (m message) set(name protoreflect.Name, value any) {
	if sub, ok := value.(proto.Message); ok {
		m.Set(m.field(name), protoreflect.ValueOfMessage(sub.ProtoReflect()))
		return
	}
	m.Set(m.field(name), protoreflect.ValueOf(value))
}

func (m message) setTexts(name protoreflect.Name, all map[string]string) {
	texts := m.Mutable(m.field(name)).Map()
	for k, v := range all {
		texts.Set(protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString(v))
	}
}

// only refuses a message with other fields than these. To ignore one would be to
// pretend: a precondition that a newer client spells in another way would seem
// to be enforced.
func (m message) only(names ...protoreflect.Name) error {
	var refused error
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !slices.Contains(names, field.Name()) {
			refused = status.Errorf(codes.Unimplemented, "grpctest: %s with %s", m.Descriptor().Name(), field.Name())
		}
		return refused == nil
	})
	if len(m.GetUnknown()) > 0 {
		refused = status.Errorf(codes.Unimplemented, "grpctest: %s with fields that it does not have", m.Descriptor().Name())
	}
	return refused
}
