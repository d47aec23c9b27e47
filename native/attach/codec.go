package attach

import (
	"fmt"

	"google.golang.org/grpc/mem"

	"tideline/native/attach/answer"
)

// codec lets our own messages through gRPC. It is given to each call, never
// registered for the process.
type codec struct{}

type question interface{ append(b []byte) []byte }

type readable interface{ Read(r answer.Message) error }

// Name is the content type that servers expect.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	q, ok := v.(question)
	if !ok {
		return nil, fmt.Errorf("%T is not a question of the profiler service", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(q.append(nil))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	a, ok := v.(readable)
	if !ok {
		return fmt.Errorf("%T is not an answer of the profiler service", v)
	}
	r := data.Reader()
	defer r.Close() //nolint:errcheck // it only gives buffers back
	if err := a.Read(r); err != nil {
		return fmt.Errorf("read the answer of the profiler server: %w", err)
	}
	return nil
}
