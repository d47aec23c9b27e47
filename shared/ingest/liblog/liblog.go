// Package liblog reads the messages by which the libraries beneath a framework
// (cuDNN, cuBLAS, cuSOLVER, cuFFT, cuSPARSE) and its copies say that they failed,
// in whatever prefix or traceback they stand.
//
// Such a message mostly means that memory ran out, and holds no figures. What
// follows from it beside the other lines of a text is decided in package
// analysis/foreign.
package liblog

import (
	"errors"
	"io"
	"slices"
	"strings"

	"tideline/shared/ingest/lines"
)

// Class is what failed.
type Class string

// The classes.
const (
	Copy      Class = "copy"        // the target of a copy has no memory
	DNN       Class = "cudnn"       // a call of cuDNN, or its handle
	BLAS      Class = "cublas"      // the same of cuBLAS
	Solver    Class = "cusolver"    // of cuSOLVER
	Sparse    Class = "cusparse"    // of cuSPARSE
	FFT       Class = "cufft"       // of cuFFT
	Algorithm Class = "convolution" // no algorithm of cuDNN could be had
	Launch    Class = "blas_launch" // a product that cuBLAS did not run
	RNN       Class = "rnn"         // cuDNN's recurrent network
	Workspace Class = "workspace"   // memory that a library works in
	Driver    Class = "driver"      // the driver itself
)

// Message is one wording of one failure, however often it was printed.
type Message struct {
	Class  Class
	Status string // such as CUDNN_STATUS_ALLOC_FAILED; "" for none
	Line   int    // of the first
	Count  int
	Node   string // of the graph, or the op, as the first names it; "" for none
	Bytes  int64  // asked for; -1 when not told
}

// Memory says whether the message is certainly about memory.
func (m *Message) Memory() bool {
	return m.Class == Copy || m.Class == Workspace || m.Class == Driver || strings.HasSuffix(m.Status, "ALLOC_FAILED")
}

// Mismatch says whether the message is about versions, not memory.
func (m *Message) Mismatch() bool { return strings.HasSuffix(m.Status, "_MISMATCH") }

// Report is what a text says of failed libraries.
type Report struct {
	Messages []Message // in order of their first lines
	Count    int       // of all, also of those beyond the ones kept
	// Loaded and Compiled are versions of cuDNN that the text says do not fit;
	// "" when it says no such thing.
	Loaded, Compiled string
}

// Empty says whether nothing failed.
func (r *Report) Empty() bool { return len(r.Messages) == 0 }

// ErrNothing says that the text holds no such message.
var ErrNothing = errors.New("no message of a failed library in it")

const (
	maxMessages = 64
	maxName     = 256
	nodeWithin  = 3 // lines that a message's node is named in
)

// Read reads a text to its end.
func Read(r io.Reader) (*Report, error) {
	p := New()
	if err := lines.Each(r, func(n int, s string) { p.Line(n, s) }); err != nil {
		return p.End(), err
	}
	rep := p.End()
	if rep.Empty() {
		return rep, ErrNothing
	}
	return rep, nil
}

// Parser takes a text line by line.
type Parser struct {
	rep  Report
	last int // one more than the message whose node may follow
	at   int // its line
}

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{} }

// End gives what was read. Nothing may follow.
func (p *Parser) End() *Report { return &p.rep }

// Line takes the next line, without its end, and says whether it was read.
func (p *Parser) Line(num int, s string) bool {
	if loaded, compiled, ok := versions(s); ok {
		p.rep.Loaded, p.rep.Compiled = loaded, compiled
		return true
	}
	m, ok := message(s)
	if !ok {
		return p.node(num, s)
	}
	p.rep.Count++
	m.Line, m.Count = num, 1
	if i := slices.IndexFunc(p.rep.Messages, func(o Message) bool { return o.Class == m.Class && o.Status == m.Status }); i >= 0 {
		p.rep.Messages[i].Count++
		p.last = 0
		return true
	}
	if len(p.rep.Messages) < maxMessages {
		p.rep.Messages = append(p.rep.Messages, m)
		p.last, p.at = len(p.rep.Messages), num
	}
	return true
}

// node takes the node that a message before names.
func (p *Parser) node(num int, s string) bool {
	if p.last == 0 || num > p.at+nodeWithin {
		return false
	}
	name := nodeOf(s, nodeHeads)
	if name == "" {
		return false
	}
	if m := &p.rep.Messages[p.last-1]; m.Node == "" {
		m.Node = name
	}
	p.last = 0
	return true
}

// statuses are the families of results by what they begin with.
var statuses = []struct {
	head  string
	class Class
}{
	{"CUDNN_STATUS_", DNN},
	{"CUBLAS_STATUS_", BLAS},
	{"CUSOLVER_STATUS_", Solver},
	{"CUSPARSE_STATUS_", Sparse},
	{"CUFFT_", FFT},
}

// failures are the results that are worth a word. A library's "not supported" is
// how a framework finds an algorithm, and no failure.
var failures = []string{"ALLOC_FAILED", "INTERNAL_ERROR", "NOT_INITIALIZED", "EXECUTION_FAILED", "ARCH_MISMATCH", "VERSION_MISMATCH"}

func message(s string) (m Message, ok bool) {
	m.Bytes = -1
	switch {
	case strings.Contains(s, "Dst tensor is not initialized"):
		m.Class = Copy
	case strings.Contains(s, "get convolution algorithm"), strings.Contains(s, "cuDNN failed to initialize"):
		m.Class = Algorithm
	case strings.Contains(s, "ThenRnn") && strings.Contains(s, "ail"):
		m.Class = RNN
	case launch(s), strings.Contains(s, "without BLAS support"):
		m.Class = Launch
	}
	// A result says more than the sentence around it.
	for _, f := range statuses {
		if status := statusAfter(s, f.head); status != "" {
			if m.Class != RNN && m.Class != Launch {
				m.Class = f.class
			}
			m.Status = status
			break
		}
	}
	switch {
	case m.Class != "":
	case workspace(s):
		m.Class = Workspace
		if n, ok := bytesIn(s); ok {
			m.Bytes = n
		}
	case strings.Contains(s, "CUDA_ERROR_OUT_OF_MEMORY"):
		m.Class = Driver
	default:
		return m, false
	}
	m.Node = nodeOf(s, opHeads)
	return m, true
}

func launch(s string) bool {
	return strings.Contains(s, "GEMM launch failed") || strings.Contains(s, "GEMV launch failed")
}

// workspace: "Failed to allocate … workspace", "scratch space: out of memory".
func workspace(s string) bool {
	if !strings.Contains(s, "workspace") && !strings.Contains(s, "Workspace") && !strings.Contains(s, "scratch") && !strings.Contains(s, "Scratch") {
		return false
	}
	for _, w := range []string{"ailed to allocate", "nable to allocate", "llocation failed", "ould not allocate", "ut of memory"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// statusAfter finds a result that is one of the failures.
func statusAfter(s, head string) string {
	for {
		i := strings.Index(s, head)
		if i < 0 {
			return ""
		}
		s = s[i:]
		n := len(head)
		for n < len(s) && (s[n] >= 'A' && s[n] <= 'Z' || s[n] == '_' || lines.IsDigit(s[n])) {
			n++
		}
		if slices.Contains(failures, strings.TrimRight(s[len(head):n], "_")) {
			return s[:n]
		}
		s = s[len(head):]
	}
}

// bytesIn finds "… N bytes".
func bytesIn(s string) (int64, bool) {
	head, _, ok := strings.Cut(s, " bytes")
	if !ok {
		return 0, false
	}
	i := len(head)
	for i > 0 && lines.IsDigit(head[i-1]) {
		i--
	}
	n, _, ok := lines.Digits(head[i:])
	return lines.Int(n, ok)
}

// nodeHeads are what stands before a node's name.
var nodeHeads = []string{"{{node ", "[[node ", "[[Node: "}

// opHeads are those of the message itself, which may name the op.
var opHeads = append(slices.Clone(nodeHeads), "[Op:")

// nodeOf finds the node or op that a line names: [[{{node a/b}}]],
// [[Node: a/b = Conv2D[…, [[node a/b (defined at …, [Op:MatMul].
func nodeOf(s string, heads []string) string {
	for _, h := range heads {
		if name, ok := lines.Between(s, h, " }]=["); ok && name != "" && len(name) <= maxName {
			return name
		}
	}
	return ""
}

// versions reads "Loaded runtime CuDNN library: 7.1.2 but source was compiled
// with: 7.6.0.".
func versions(s string) (loaded, compiled string, ok bool) {
	_, rest, ok := strings.Cut(s, "Loaded runtime CuDNN library: ")
	if !ok {
		return "", "", false
	}
	loaded, rest, ok = strings.Cut(rest, " ")
	if !ok {
		return "", "", false
	}
	_, rest, ok = strings.Cut(rest, "compiled with")
	rest = strings.TrimLeft(rest, ": ")
	compiled, _, _ = strings.Cut(rest, " ")
	compiled = strings.TrimRight(compiled, ".,")
	return loaded, compiled, ok && version(loaded) && version(compiled)
}

func version(s string) bool {
	return s != "" && len(s) < 32 && strings.Trim(s, "0123456789.") == ""
}
