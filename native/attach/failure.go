package attach

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tideline/protocol/event"
)

// Kind is why there is no profile.
type Kind uint8

// Kinds of failure.
const (
	Unreachable Kind = iota // nobody listens, or nobody answers
	NotProfiler             // somebody does, and it is no profiler server
	Failed                  // the server says that it could not
	TooSlow                 // no answer in time
	TooLarge                // more than the limit
	Broken                  // the answer is cut or no answer
	Empty                   // nothing was recorded
	Elsewhere               // it was written where it cannot be seen from here
	Stopped                 // by the caller, before there was anything
)

// Error says why there is no profile and what to do. Its text names the
// address.
type Error struct {
	Target Target
	Kind   Kind
	Text   string
	err    error
}

// Error implements error.
func (e *Error) Error() string { return e.Target.String() + ": " + e.Text }

// Unwrap is what gRPC or the system said.
func (e *Error) Unwrap() error { return e.err }

// start says how a program is made one that can be attached to.
func start(port uint16) string {
	return fmt.Sprintf("in the program, call tf.profiler.experimental.server.start(%d) or jax.profiler.start_server(%d)", port, port)
}

func tooLarge(o *Options) string {
	return fmt.Sprintf("the profile is larger than %s: record a shorter time with --for", event.FormatBytes(o.Limit))
}

// explain turns what gRPC says into what happened.
func explain(t Target, o *Options, f folder, err error) error {
	e := &Error{Target: t, Kind: Failed, err: err}
	if errors.Is(err, context.Canceled) {
		e.Kind, e.Text = Stopped, "stopped before there was a profile"
		return e
	}
	s := status.Convert(err)
	said := s.Message()
	switch s.Code() {
	case codes.Unavailable:
		e.Kind, e.Text = unavailable(t, said)
	case codes.Unimplemented:
		e.Kind, e.Text = NotProfiler, "a gRPC server answers, but it has no profiler service: is it the port that the program gave to its profiler server? If there is none, "+start(t.Port)
	case codes.DeadlineExceeded:
		e.Kind, e.Text = TooSlow, fmt.Sprintf("no profile came within %v of the end of the recording: record a shorter time with --for, or wait longer with --grace", o.Grace)
	case codes.ResourceExhausted:
		e.Kind, e.Text = Failed, "the server says: "+said
		if strings.Contains(said, "larger than max") { // the words of the client's own library
			e.Kind, e.Text = TooLarge, tooLarge(o)
		}
	case codes.Internal, codes.Unknown, codes.FailedPrecondition, codes.AlreadyExists, codes.PermissionDenied, codes.Aborted:
		e.Kind, e.Text = failed(f, said)
	default:
		e.Text = fmt.Sprintf("the server says %v: %s", s.Code(), said)
	}
	return e
}

// unavailable tells a port where nobody listens from one that is another
// service's, and from a connection that broke. gRPC has one code for all of
// them; where its words change, the last case still says them.
func unavailable(t Target, said string) (Kind, string) {
	has := func(part string) bool { return strings.Contains(said, part) }
	switch {
	case has("no such host"), has("server misbehaving"), has("name resolution"):
		return Unreachable, "there is no machine of that name: " + last(said)
	case has("connection refused"):
		return Unreachable, "nobody listens there: " + start(t.Port) + ", and attach while it runs"
	case has("use of closed network connection"), has("i/o timeout"), has("DeadlineExceeded"), has("deadline exceeded"), has("no route to host"), has("network is unreachable"):
		return Unreachable, "no answer: is the address right, and does a firewall stand between? From another machine, forward the port: ssh -L " +
			fmt.Sprintf("%d:localhost:%d HOST, then tf://localhost:%d", t.Port, t.Port, t.Port)
	case has("server preface"), has("frame"), has("HTTP status"), has("content-type"):
		return NotProfiler, "what listens there does not speak gRPC: " + start(t.Port) + ", and take that port"
	}
	return Broken, "the connection broke before the profile was whole: did the program end? (" + said + ")"
}

// last is the end of an error that tells its whole way.
func last(said string) string {
	if i := strings.LastIndex(said, "lookup "); i >= 0 {
		said = said[i:]
	}
	return strings.TrimRight(said, `"`)
}

// failed is what a server says that could not, with what is known to help.
func failed(f folder, said string) (Kind, string) {
	low := strings.ToLower(said)
	switch {
	case strings.Contains(low, "read the answer of the profiler server"):
		return Broken, said
	case strings.Contains(low, "another profil"), strings.Contains(low, "already active"), strings.Contains(low, "already running"):
		return Failed, "the program is being profiled already, and can be only once at a time: end that, or wait (" + said + ")"
	case strings.Contains(said, f.path) || strings.Contains(low, "permission"):
		return Failed, "the server could not write the profile: " + said + "; give a folder that the program may write to with --folder"
	}
	return Failed, "the server could not make a profile: " + said
}
