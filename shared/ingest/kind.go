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
	PNG
	JPEG
	GIF
	PDF
	Executable
	Packed // by another packer than gzip
	Tar
	SafeTensors
	ONNX
	HDF5
	NumPy
	Parquet
	GGUF
	SQLite
	Binary
)

// kindWords word the kinds as in "this is …".
var kindWords = [...]string{
	Unrecognised: "of no known kind",
	Timeline:     "a Tideline timeline",
	TimelineText: "the text form of a timeline",
	Log:          "text",
	Empty:        "an empty file",
	GZip:         "gzip-compressed data",
	ZIP:          "a ZIP archive (PyTorch's checkpoints are such, too)",
	Pickle:       "a Python pickle (perhaps a PyTorch memory snapshot)",
	JSON:         "JSON",
	XSpace:       "a protobuf message (perhaps a TensorFlow profile)",
	MemoryMap:    "a memory map of TensorFlow's allocator",
	PNG:          "a picture (PNG)",
	JPEG:         "a picture (JPEG)",
	GIF:          "a picture (GIF)",
	PDF:          "a PDF document",
	Executable:   "an executable program",
	Packed:       "packed by another packer than gzip: unpack it first",
	Tar:          "a tar archive: unpack it first",
	SafeTensors:  "weights of a model (safetensors)",
	ONNX:         "a model (ONNX)",
	HDF5:         "an HDF5 file (weights or data)",
	NumPy:        "an array of NumPy",
	Parquet:      "a table (Parquet)",
	GGUF:         "a model (GGUF)",
	SQLite:       "an SQLite database",
	Binary:       "binary data",
}

// String words the kind as in "this is …".
func (k Kind) String() string {
	if int(k) < len(kindWords) {
		return kindWords[k]
	}
	return kindWords[Unrecognised]
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
	{"\x89PNG", PNG},
	{"\xff\xd8\xff", JPEG},
	{"GIF8", GIF},
	{"%PDF", PDF},
	{"\x7fELF", Executable},
	{"MZ", Executable},
	{"\xcf\xfa\xed\xfe", Executable},
	{"\x28\xb5\x2f\xfd", Packed},
	{"\xfd7zXZ\x00", Packed},
	{"7z\xbc\xaf\x27\x1c", Packed},
	{"BZh91AY", Packed},
	{"\x89HDF\r\n", HDF5},
	{"\x93NUMPY", NumPy},
	{"PAR1", Parquet},
	{"GGUF", GGUF},
	{"SQLite format 3\x00", SQLite},
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
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
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
	return ofData(head)
}

// ofData tells kinds of binary data that have no word at their beginning.
func ofData(head []byte) Kind {
	switch {
	case len(head) >= 262 && string(head[257:262]) == "ustar":
		return Tar
	case len(head) > 10 && bytes.HasPrefix(head[8:], []byte(`{"`)) && binary.LittleEndian.Uint64(head) < 1<<30:
		return SafeTensors // the length of its header, then that
	case len(head) > 4 && head[0] == 0x08 && head[1] < 0x20 && head[2] == 0x12 && int(head[3]) < len(head)-4 && isText(head[4:4+head[3]]):
		return ONNX // its version's number, then who wrote it
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

// Error says what came, and then what can be opened.
func (e *UnsupportedError) Error() string {
	s := fmt.Sprintf("%s is %s", e.Name, e.Kind)
	if e.Detail != "" {
		s += ", but there is " + e.Detail
	}
	return s + ". Tideline opens .tideline files; logs of TensorFlow, JAX, PyTorch or ONNX Runtime that ran out of memory; PyTorch memory snapshots; profiles and traces (XSpace, Chrome, pprof); memory maps; tables of nvidia-smi and RMM. Each kind is shown in docs/guide."
}
