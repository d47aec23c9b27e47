package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"tideline/shared/ingest/memorydump"
)

// Kind is what a file is.
type Kind uint8

// The kinds. Open reads timelines, logs, pickles, JSON, XSpaces, memory maps and,
// where it is a profile, Binary, gzip taken off; the others are recognised so
// that a refusal can say what came instead.
const (
	Unrecognised Kind = iota
	Timeline          // our own .tideline
	TimelineText      // its text form
	Log               // text that may hold an allocator's out-of-memory report
	Empty
	GZip
	ZIP
	Pickle
	JSON
	XSpace
	MemoryMap // of a BFC allocator, TF_BFC_MEMORY_DUMP
	Picture
	PDF
	Executable
	Binary
)

// String words the kind as in "this is …".
func (k Kind) String() string {
	switch k {
	case Timeline:
		return "a Tideline timeline"
	case TimelineText:
		return "the text form of a timeline"
	case Log:
		return "text"
	case Empty:
		return "an empty file"
	case GZip:
		return "gzip-compressed data"
	case ZIP:
		return "a ZIP archive"
	case Pickle:
		return "a Python pickle (perhaps a PyTorch memory snapshot)"
	case JSON:
		return "JSON"
	case XSpace:
		return "a protobuf message (perhaps a TensorFlow profile)"
	case MemoryMap:
		return "a memory map of TensorFlow's allocator"
	case Picture:
		return "a picture"
	case PDF:
		return "a PDF document"
	case Executable:
		return "an executable program"
	case Binary:
		return "binary data"
	default:
		return "of no known kind"
	}
}

// HeadBytes is how much of a file's beginning Recognise wants to see.
const HeadBytes = 4096

// magics are unmistakable beginnings.
var magics = []struct {
	head string
	kind Kind
}{
	{"\x89TIDE", Timeline},
	{"TDLB", Timeline},
	{"# tideline text", TimelineText},
	{"\x1f\x8b", GZip},
	{"PK\x03\x04", ZIP},
	{"PK\x05\x06", ZIP},
	{"\x80\x02", Pickle},
	{"\x80\x03", Pickle},
	{"\x80\x04", Pickle},
	{"\x80\x05", Pickle},
	{"\x89PNG", Picture},
	{"\xff\xd8\xff", Picture},
	{"GIF8", Picture},
	{"%PDF", PDF},
	{"\x7fELF", Executable},
	{"MZ", Executable},
	{"\xcf\xfa\xed\xfe", Executable},
}

// Recognise tells a file's kind by its first bytes. Of a file shorter than
// HeadBytes it wants all.
func Recognise(head []byte) Kind {
	if len(head) == 0 {
		return Empty
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.head)) && (m.head != "MZ" || bytes.IndexByte(head, 0) >= 0) {
			return m.kind
		}
	}
	if memorydump.Is(head) {
		return MemoryMap
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) {
		return Log // text in UTF-16, as PowerShell redirects it
	}
	if isText(head) {
		t := strings.TrimSpace(strings.TrimPrefix(string(head), "\ufeff"))
		if looksLikeJSON(t) {
			return JSON
		}
		return Log
	}
	if head[0] == 0x0a && (bytes.Contains(head, []byte("/device:")) || isPlane(head)) {
		return XSpace
	}
	return Binary
}

// isPlane: the beginning of a message whose first field is a message that
// begins with a number, perhaps, and a name, as the planes of profiles do. Those
// of programs without an accelerator name no device, and the first plane is
// longer than what is seen of it.
func isPlane(head []byte) bool {
	length, n := binary.Uvarint(head[1:])
	if n <= 0 || length < 3 {
		return false
	}
	in := head[1+n:]
	in = in[:min(uint64(len(in)), length)]
	if len(in) > 0 && in[0] == 0x08 {
		if _, n = binary.Uvarint(in[1:]); n <= 0 {
			return false
		}
		in = in[1+n:]
	}
	if len(in) < 3 || in[0] != 0x12 || int(in[1]) > len(in)-2 {
		return false
	}
	name := in[2 : 2+int(in[1])]
	return len(name) > 1 && (bytes.HasPrefix(name, []byte("/")) || string(name) == "Host CPUs" || string(name) == "Task Environment")
}

// isText allows what logs hold: any UTF-8, a few stray bytes of other
// encodings, and terminal control, but no zero bytes.
func isText(head []byte) bool {
	bad, i := 0, 0
	for i < len(head) {
		c, n := utf8.DecodeRune(head[i:])
		switch {
		case c == 0:
			return false
		case c == utf8.RuneError && n == 1 && len(head)-i > utf8.UTFMax:
			bad++
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\x1b' && c != '\b' && c != '\f':
			bad++
		}
		i += n
	}
	return bad*20 <= len(head)
}

// looksLikeJSON tells an object or array from text that begins with a bracket,
// such as a log of "[1,0]<stderr>:" lines.
func looksLikeJSON(t string) bool {
	if t == "" {
		return false
	}
	rest := strings.TrimLeft(t[1:], " \t\r\n")
	switch {
	case rest == "":
		return t[0] == '{' || t[0] == '['
	case t[0] == '{':
		return rest[0] == '"' || rest[0] == '}'
	case t[0] == '[':
		return strings.IndexByte("{[\"]", rest[0]) >= 0 && !strings.HasPrefix(t, "[[Node")
	}
	return false
}

// UnsupportedError says that the file is recognised, and not one that can be opened.
type UnsupportedError struct {
	Name   string // of the file
	Kind   Kind
	Detail string // what was looked for in vain, if anything
}

// Error says what came and what was expected.
func (e *UnsupportedError) Error() string {
	s := fmt.Sprintf("%s is %s", e.Name, e.Kind)
	if e.Detail != "" {
		s += ", but there is " + e.Detail
	}
	return s + "; expected a .tideline file or a log of what ran out of memory: of a BFC allocator (\"Allocator (GPU_0_bfc) ran out of memory trying to allocate …\"), XLA, ONNX Runtime or PyTorch, RMM's CSV, output of nvidia-smi, __LOG_MEMORY__ lines, memory figures printed per step, messages of cuDNN and cuBLAS, TensorFlow's placement of ops, a memory snapshot of PyTorch, a profile of TensorFlow or JAX, a memory map of TensorFlow's allocator (TF_BFC_MEMORY_DUMP), a Chrome trace, or a pprof profile"
}
