package text

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// field is how one field of an event is written and read. append writes
// nothing when the field has its usual value.
type field struct {
	name   string
	append func(b []byte, e *event.Event, s *event.Strings) []byte
	parse  func(e *event.Event, s *event.Strings, v string) error
}

// fields are all fields, ascending by name.
var fields = sorted([]field{
	{
		"address",
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if e.Address == 0 {
				return b
			}
			return strconv.AppendUint(append(b, " address=0x"...), e.Address, 16)
		},
		func(e *event.Event, _ *event.Strings, v string) (err error) {
			e.Address, err = strconv.ParseUint(v, 0, 64)
			return err
		},
	},
	unsigned("allocator", 16, func(e *event.Event) uint64 { return uint64(e.Allocator) }, func(e *event.Event, v uint64) { e.Allocator = event.AllocatorID(v) }),
	unsigned("device", 16, func(e *event.Event) uint64 { return uint64(e.Device) }, func(e *event.Event, v uint64) { e.Device = event.DeviceID(v) }),
	unsigned("peer", 16, func(e *event.Event) uint64 { return uint64(e.Peer) }, func(e *event.Event, v uint64) { e.Peer = event.DeviceID(v) }),
	unsigned("id", 64, func(e *event.Event) uint64 { return e.ID }, func(e *event.Event, v uint64) { e.ID = v }),
	unsigned("stream", 8, func(e *event.Event) uint64 { return uint64(e.Stream) }, func(e *event.Event, v uint64) { e.Stream = event.StreamID(v) }),
	str("op", func(e *event.Event) *event.StringID { return &e.Op }),
	str("tensor", func(e *event.Event) *event.StringID { return &e.Tensor }),
	str("text", func(e *event.Event) *event.StringID { return &e.Text }),
	signed("requested", func(e *event.Event) *int64 { return &e.Requested }),
	{
		"size",
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if e.Size == 0 || isReal(e) {
				return b
			}
			return strconv.AppendInt(append(b, " size="...), e.Size, 10)
		},
		signed("size", func(e *event.Event) *int64 { return &e.Size }).parse,
	},
	{
		"value", // a metric's real number; its bits are the size
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if !isReal(e) {
				return b
			}
			return strconv.AppendFloat(append(b, " value="...), math.Float64frombits(uint64(e.Size)), 'g', -1, 64)
		},
		func(e *event.Event, _ *event.Strings, v string) error {
			f, err := strconv.ParseFloat(v, 64)
			e.Size = int64(math.Float64bits(f))
			return err
		},
	},
	{
		"step",
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if e.Step == event.NoStep {
				return b
			}
			return strconv.AppendInt(append(b, " step="...), int64(e.Step), 10)
		},
		func(e *event.Event, _ *event.Strings, v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			e.Step = int32(n)
			return err
		},
	},
	{
		"category",
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if e.Category == 0 || isOp(e) {
				return b
			}
			return appendString(append(b, " category="...), e.Category.String())
		},
		func(e *event.Event, _ *event.Strings, v string) (err error) {
			e.Category, err = word(v, "category-", event.ParseCategory)
			return err
		},
	},
	{
		"part", // an op's category
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if !isOp(e) {
				return b
			}
			if int(e.Category) < len(parts) {
				return append(append(b, " part="...), parts[e.Category]...)
			}
			return strconv.AppendUint(append(b, " part=part-"...), uint64(e.Category), 10)
		},
		func(e *event.Event, _ *event.Strings, v string) (err error) {
			e.Category, err = word(v, "part-", func(v string) (event.Category, bool) {
				i := slices.Index(parts[:], v)
				return event.Category(i), i >= 0
			})
			return err
		},
	},
	{
		"cause",
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if e.Cause == 0 {
				return b
			}
			return appendString(append(b, " cause="...), causeName(e))
		},
		parseCause,
	},
	{"flags", appendFlags, parseFlags},
})

func sorted(f []field) []field {
	sort.Slice(f, func(i, j int) bool { return f[i].name < f[j].name })
	return f
}

// parts are the parts of a step that an op belongs to, by Category.
var parts = [...]string{
	event.OpForward: "forward", event.OpBackward: "backward", event.OpUpdate: "update",
	event.OpInput: "input", event.OpCopy: "copy",
}

func isOp(e *event.Event) bool { return e.Kind == event.OpBegin || e.Kind == event.OpEnd }

// isReal reports whether the size is written as a real number: only where
// reading gives the same bits, which a NaN with a payload does not.
func isReal(e *event.Event) bool {
	if e.Kind != event.Metric || e.Size == 0 {
		return false
	}
	f := math.Float64frombits(uint64(e.Size))
	return f == f || uint64(e.Size) == math.Float64bits(math.NaN())
}

func unsigned(name string, bits int, get func(*event.Event) uint64, set func(*event.Event, uint64)) field {
	return field{
		name,
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if get(e) == 0 {
				return b
			}
			b = append(append(append(b, ' '), name...), '=')
			return strconv.AppendUint(b, get(e), 10)
		},
		func(e *event.Event, _ *event.Strings, v string) error {
			n, err := strconv.ParseUint(v, 10, bits)
			set(e, n)
			return err
		},
	}
}

func signed(name string, at func(*event.Event) *int64) field {
	return field{
		name,
		func(b []byte, e *event.Event, _ *event.Strings) []byte {
			if *at(e) == 0 {
				return b
			}
			b = append(append(append(b, ' '), name...), '=')
			return strconv.AppendInt(b, *at(e), 10)
		},
		func(e *event.Event, _ *event.Strings, v string) (err error) {
			*at(e), err = strconv.ParseInt(v, 10, 64)
			return err
		},
	}
}

func str(name string, at func(*event.Event) *event.StringID) field {
	return field{
		name,
		func(b []byte, e *event.Event, s *event.Strings) []byte {
			v := s.At(*at(e))
			if v == "" {
				return b
			}
			b = append(append(append(b, ' '), name...), '=')
			return appendString(b, v)
		},
		func(e *event.Event, s *event.Strings, v string) error {
			*at(e) = s.ID(v)
			return nil
		},
	}
}

// word reads a word, or a number behind a prefix for what has no word.
func word[T ~uint8](v, prefix string, parse func(string) (T, bool)) (T, error) {
	if t, ok := parse(v); ok {
		return t, nil
	}
	if n, ok := strings.CutPrefix(v, prefix); ok {
		if u, err := strconv.ParseUint(n, 10, 8); err == nil {
			return T(u), nil
		}
	}
	return 0, fmt.Errorf("no such word, nor %sN with N below 256", prefix)
}

func causeName(e *event.Event) string {
	switch e.Kind {
	case event.TransferBegin, event.TransferEnd:
		return event.TransferCause(e.Cause).String()
	case event.OutOfMemory:
		return event.OOMCause(e.Cause).String()
	case event.End:
		return event.EndReason(e.Cause).String()
	default:
		return "cause-" + strconv.Itoa(int(e.Cause))
	}
}

func parseCause(e *event.Event, _ *event.Strings, v string) (err error) {
	switch e.Kind {
	case event.TransferBegin, event.TransferEnd:
		var c event.TransferCause
		c, err = word(v, "cause-", event.ParseTransferCause)
		e.Cause = uint8(c)
	case event.OutOfMemory:
		var c event.OOMCause
		c, err = word(v, "oom-", event.ParseOOMCause)
		e.Cause = uint8(c)
	case event.End:
		var c event.EndReason
		c, err = word(v, "end-", event.ParseEndReason)
		e.Cause = uint8(c)
	default:
		e.Cause, err = word(v, "cause-", func(string) (uint8, bool) { return 0, false })
	}
	return err
}

var flagNames = [8]string{"pinned", "driver-staged", "modelled", "retryable", "warning", "failure", "flag-6", "flag-7"}

func appendFlags(b []byte, e *event.Event, _ *event.Strings) []byte {
	if e.Flags == 0 {
		return b
	}
	b = append(b, " flags="...)
	for i, name := range flagNames {
		if e.Flags>>i&1 != 0 {
			b = append(append(b, name...), '+')
		}
	}
	return b[:len(b)-1]
}

func parseFlags(e *event.Event, _ *event.Strings, v string) error {
	for name := range strings.SplitSeq(v, "+") {
		i := slices.Index(flagNames[:], name)
		if i < 0 {
			return fmt.Errorf("no such flag as %q, there are %s", name, strings.Join(flagNames[:], ", "))
		}
		e.Flags |= 1 << i
	}
	return nil
}
