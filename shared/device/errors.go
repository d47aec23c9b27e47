package device

import "errors"

// Kind is the kind of an error by TensorFlow's name, so that people can search
// for it. A Kind is an error itself: errors.Is(err, device.ValueError) asks for
// the kind of err.
type Kind uint8

// The kinds. ValueError to KeyError are Python's and come from a call of the
// configuration at once; the others are status codes and come from making
// devices or from running ops.
const (
	ValueError Kind = iota + 1
	RuntimeError
	KeyError
	InvalidArgument
	NotFound
	AlreadyExists
	Internal
	Unknown
	ResourceExhausted
	FailedPrecondition
	Cancelled
)

var kinds = [...]string{
	"", "ValueError", "RuntimeError", "KeyError", "InvalidArgument", "NotFound", "AlreadyExists",
	"Internal", "Unknown", "ResourceExhausted", "FailedPrecondition", "Cancelled",
}

// String is TensorFlow's name of the kind.
func (k Kind) String() string { return kinds[k] }

// Error makes a Kind an error that others can be compared with.
func (k Kind) Error() string { return kinds[k] }

// What a caller may want to tell apart within a kind.
var (
	ErrUnknown       = errors.New("unknown device")
	ErrConflict      = errors.New("settings exclude each other")
	ErrGrowthDiffers = errors.New("memory growth differs between GPUs")
	ErrInitialized   = errors.New("already initialised")
)

// Error is a refusal by TensorFlow's rules.
type Error struct {
	Kind    Kind
	Device  string // the device it is about, as the caller wrote it; "" for none
	Setting string // the setting: "memory growth", "visible devices"; "" for none
	Op      string // the op; "" for none
	Message string // what was wrong and what to do, without the above
	Cause   error  // one of the sentinels, or what is behind it; may be nil
}

// Error is "Kind: setting of device: message".
func (e *Error) Error() string {
	s := e.Kind.String() + ": "
	if e.Op != "" {
		s += "op " + e.Op + ": "
	}
	switch {
	case e.Setting != "" && e.Device != "":
		s += e.Setting + " of " + e.Device + ": "
	case e.Setting != "":
		s += e.Setting + ": "
	case e.Device != "":
		s += e.Device + ": "
	}
	return s + e.Message
}

// Is compares kinds.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf is the kind of the first Error in err's chain, 0 when there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}
