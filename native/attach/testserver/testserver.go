// Package testserver is a profiler server for tests: it speaks the service that
// TensorFlow's and JAX's speak, and answers as servers of every age do, or
// fails as they do. Only tests import it.
//
// It takes the questions apart on its own, not with the code of package attach,
// so that a mistake there does not cancel out.
package testserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Behaviour is what the server does with a question.
type Behaviour struct {
	Space   []byte        // the profile
	Age     Age           // how it is handed over
	Err     error         // instead of a profile; see package status
	Late    time.Duration // beyond the duration asked for
	Monitor string        // what Monitor answers; "" for not at all
	Garbage []byte        // the answer's bytes, whatever they are
}

// Age is the generation of a server.
type Age int

// Ages.
const (
	Answers    Age = iota // with the XSpace, as TensorFlow 2.21 and JAX 0.10 do
	Writes                // it into the repository, as those from 2021 on
	Tools                 // files of tools into the answer, as in 2020
	WritesTool            // a memory profile into the repository, as in 2020
	Nowhere               // claims to have written and has not: another machine
)

// Server is one that runs.
type Server struct {
	Addr string // HOST:PORT

	do      Behaviour
	mu      sync.Mutex
	asked   []Question
	stopped map[string]chan struct{}
}

// Question is a profile request as it came.
type Question struct {
	Duration, OptionDuration    time.Duration
	Repository, Session, Host   string
	Tools                       []string
	InAnswer                    bool
	HostLevel, DeviceLevel      uint64
	PythonLevel, OptionsVersion uint64
}

// Start runs a server until the test ends.
func Start(tb testing.TB, do Behaviour) *Server {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), do: do, stopped: map[string]chan struct{}{}}
	g := grpc.NewServer(grpc.ForceServerCodecV2(raw{}))
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "tensorflow.ProfilerService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Profile", Handler: handler(s.profile)},
			{MethodName: "Terminate", Handler: handler(s.terminate)},
			{MethodName: "Monitor", Handler: handler(s.monitor)},
		},
	}, s)
	over := make(chan error, 1)
	go func() { over <- g.Serve(l) }()
	tb.Cleanup(func() {
		g.Stop()
		if err := <-over; err != nil {
			tb.Errorf("the profiler server: %v", err)
		}
	})
	return s
}

// StartOther runs a gRPC server that knows no service.
func StartOther(tb testing.TB) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g := grpc.NewServer()
	go func() { _ = g.Serve(l) }() // it ends with Stop
	tb.Cleanup(g.Stop)
	return l.Addr().String()
}

// Asked are the questions so far.
func (s *Server) Asked() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Question(nil), s.asked...)
}

// stop is closed when a session is to end.
func (s *Server) stop(session string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped[session] == nil {
		s.stopped[session] = make(chan struct{})
	}
	return s.stopped[session]
}

func (s *Server) profile(ctx context.Context, b []byte) ([]byte, error) {
	q, err := read(b)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.mu.Unlock()
	select {
	case <-time.After(q.OptionDuration + s.do.Late):
	case <-s.stop(q.Session):
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	switch {
	case s.do.Err != nil:
		return nil, s.do.Err
	case s.do.Garbage != nil:
		return s.do.Garbage, nil
	case len(s.do.Space) == 0:
		return protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 1), nil
	}
	return s.hand(&q)
}

func (s *Server) hand(q *Question) ([]byte, error) {
	dir := filepath.Join(q.Repository, q.Session)
	name := q.Host + ".xplane.pb"
	switch s.do.Age {
	case Answers:
		if q.InAnswer {
			return protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), s.do.Space), nil
		}
	case Tools:
		d := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "memory_profile.json.gz")
		d = protowire.AppendBytes(protowire.AppendTag(d, 2, protowire.BytesType), s.do.Space)
		return protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), d), nil
	case WritesTool:
		name = q.Host + ".memory_profile.json.gz"
	case Nowhere:
		return nil, nil
	case Writes:
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := os.WriteFile(filepath.Join(dir, name), s.do.Space, 0o600); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return nil, nil
}

func (s *Server) terminate(_ context.Context, b []byte) ([]byte, error) {
	v, n := field(b, 1)
	if n < 0 {
		return nil, status.Error(codes.InvalidArgument, "no session")
	}
	close(s.stop(string(v)))
	return nil, nil
}

func (s *Server) monitor(context.Context, []byte) ([]byte, error) {
	if s.do.Monitor == "" {
		return nil, status.Error(codes.Unimplemented, "unimplemented.")
	}
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s.do.Monitor), nil
}

// field is the content of a field of bytes; n is negative where it is missing.
func field(b []byte, want protowire.Number) (v []byte, n int) {
	for len(b) > 0 {
		num, t, used := protowire.ConsumeTag(b)
		if used < 0 {
			return nil, used
		}
		if b = b[used:]; num == want && t == protowire.BytesType {
			return protowire.ConsumeBytes(b)
		}
		if used = protowire.ConsumeFieldValue(num, t, b); used < 0 {
			return nil, used
		}
		b = b[used:]
	}
	return nil, -1
}

func read(b []byte) (q Question, err error) {
	err = visit(b, func(n protowire.Number, v uint64, text []byte) {
		switch int(n) {
		case 1:
			q.Duration = time.Duration(v) * time.Millisecond
		case 3:
			q.Tools = append(q.Tools, string(text))
		case 4:
			err = visit(text, q.option)
		case 5:
			q.Repository = string(text)
		case 6:
			q.Session = string(text)
		case 7:
			q.Host = string(text)
		case 9:
			q.InAnswer = v == 1
		}
	})
	return q, err
}

func (q *Question) option(n protowire.Number, v uint64, _ []byte) {
	switch int(n) {
	case 2:
		q.HostLevel = v
	case 3:
		q.DeviceLevel = v
	case 4:
		q.PythonLevel = v
	case 5:
		q.OptionsVersion = v
	case 9:
		q.OptionDuration = time.Duration(v) * time.Millisecond
	}
}

func visit(b []byte, f func(n protowire.Number, v uint64, text []byte)) error {
	for len(b) > 0 {
		n, t, used := protowire.ConsumeTag(b)
		if used < 0 {
			return fmt.Errorf("a tag: %w", protowire.ParseError(used))
		}
		b = b[used:]
		var v uint64
		var text []byte
		switch t {
		case protowire.VarintType:
			v, used = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, used = protowire.ConsumeBytes(b)
		default:
			used = protowire.ConsumeFieldValue(n, t, b)
		}
		if used < 0 {
			return fmt.Errorf("field %d: %w", n, protowire.ParseError(used))
		}
		f(n, v, text)
		b = b[used:]
	}
	return nil
}

func handler(f func(context.Context, []byte) ([]byte, error)) grpc.MethodHandler {
	return func(_ any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var in []byte
		if err := dec(&in); err != nil {
			return nil, err
		}
		out, err := f(ctx, in)
		if err != nil {
			return nil, err
		}
		return &out, nil
	}
}

// raw passes messages as bytes.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
