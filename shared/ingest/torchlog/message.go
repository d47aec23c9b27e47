package torchlog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// Message is one out-of-memory message.
type Message struct {
	Line    int
	Count   int    // equal messages
	Form    Form   // which generation of the wording
	Backend string // CUDA, HIP, XPU, MPS; CPU for memory of the host
	Device  int64  // -1 when not told

	Requested, Capacity, Free Figure
	Allocated                 Figure // by PyTorch, private pools included
	Reserved                  Figure // 1.4 to 2.0
	Idle                      Figure // new forms, and "cached" before 1.4: reserved, not allocated
	Private                   Figure // allocated in private pools
	ThisProcess               Figure
	Allowed                   Figure // a configured fraction of the device
	Processes                 []Process
	Other                     Figure // MPS: allocations outside the pool
	Block                     Figure // more than this the platform gives in no single block

	Sentences  int  // that tell what a process uses, this one's included
	Untold     int  // of them whose figure is 2^64 bytes, which stands for none
	BeyondAll  bool // "more than 1EB"
	Wrapped    bool // hard-wrapped over lines
	Misspelt   bool // "capacty", of 2.1
	Expandable bool // the hint names expandable segments
	MaxSplit   bool // the hint names max_split_size_mb
	Cached     bool // says "cached", before 1.4
	Cut        bool // begins to tell the state, and breaks off
}

// Process is another process that the message names.
type Process struct {
	ID   int64
	Used Figure
}

// Form is a generation of the wording.
type Form uint8

// The forms.
const (
	NoState       Form = iota // the request alone
	Parenthesised             // to 2.0
	Sentences                 // from 2.1
	Async                     // the cudaMallocAsync backend's table
	MPS                       // Apple
	Host                      // the CPU's allocator
)

// The bounds of a message that is put together from lines.
const (
	maxJoined   = 1 << 13
	maxLines    = 24
	maxMessages = 1024
)

// starts are what a message is recognised by, without blanks.
const (
	tried      = "Triedtoallocate"
	before     = "outofmemory."
	startMPS   = "outofmemory(MPSallocated:"
	startAsync = "wouldexceedallowedmemory.(outofmemory)"
	triedHost  = "youtriedtoallocate"
	capacity   = "hasatotalcapac"
)

// backends are the device types in the wording, which is the same for each.
var backends = []string{"CUDA", "HIP", "XPU", "NPU", "MLU", "MUSA"}

// squeeze removes the blanks, and undoes what a web page did to the text.
func squeeze(s string) string {
	if strings.Contains(s, "&gt;") {
		s = strings.ReplaceAll(s, "&gt;", ">")
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := range len(s) {
		if c := s[i]; c > ' ' {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// startsMessage is quick for the lines of other programs.
func startsMessage(line string) bool {
	if !strings.Contains(line, "memory") && !strings.Contains(line, "Tried") {
		return false
	}
	s := squeeze(line)
	return requestAt(s) >= 0 || strings.Contains(s, startMPS) || strings.Contains(s, startAsync) || startsHost(s) || breaksOff(s) || requestAlone(s)
}

// requestAlone: the line is "Tried to allocate 15.00 GiB." and no more, as where
// the line before was not copied. The next line shows whose words they are.
func requestAlone(s string) bool {
	after, ok := strings.CutPrefix(s, tried)
	f, rest := scanFigure(after)
	return ok && f.Known && strings.Trim(rest, ".") == ""
}

// goesOn says whether a line holds the middle of a message whose beginning is
// not in the text.
func goesOn(line string) bool {
	if !strings.Contains(line, "capac") {
		return false
	}
	head, after, ok := strings.Cut(squeeze(line), capacity)
	return ok && head != "" && lines.IsDigit(head[len(head)-1]) && strings.Contains(after, "ofwhich")
}

// startsHost: the CPU's allocator, in its words of all versions.
func startsHost(s string) bool {
	for _, w := range []string{"CPUAllocator:notenoughmemory:", "CPUAllocator:can'tallocatememory:", "Torch:notenoughmemory:"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// requestAt is where a text without blanks tells a request: "Tried to
// allocate", after the words "out of memory" or before a device and its state.
// It is -1 for none.
func requestAt(s string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], tried)
		if i < 0 {
			return -1
		}
		i += from
		from = i + len(tried)
		if strings.HasSuffix(s[:i], before) || deviceFollows(s[from:]) {
			return i
		}
	}
}

// deviceFollows: "20.00MiB(GPU0;" or "20.00MiB.GPU0hasatotalcapac".
func deviceFollows(s string) bool {
	f, rest := scanFigure(s)
	if !f.Known {
		return false
	}
	if paren, ok := strings.CutPrefix(rest, "("); ok {
		return deviceOf(paren) != ""
	}
	return strings.HasPrefix(rest, ".GPU") && strings.Contains(rest[:min(len(rest), 32)], capacity)
}

// deviceOf is the kind of a device at the start of a text: GPU, or a backend.
func deviceOf(s string) string {
	if strings.HasPrefix(s, "GPU") {
		return "GPU"
	}
	for _, b := range backends {
		if strings.HasPrefix(s, b) {
			return b
		}
	}
	return ""
}

// breaksOff: the line ends within the words that a message starts with.
func breaksOff(s string) bool {
	const start = before + tried
	for n := len(before); n < len(start); n++ {
		head, ok := strings.CutSuffix(s, start[:n])
		if !ok {
			continue
		}
		for _, b := range backends {
			if strings.HasSuffix(head, b) {
				return true
			}
		}
	}
	return false
}

// complete says whether a text without blanks holds all that a message tells.
func complete(s string) bool {
	switch {
	case strings.Contains(s, startAsync):
		_, after, ok := strings.Cut(s, "memoryfraction)")
		return ok && figureAfter(after, ":").Known && (strings.HasSuffix(after, "B") || len(after) > 30)
	case strings.Contains(s, startMPS):
		return figureAfter(s, tried).Known
	case startsHost(s):
		return figureAfter(s, triedHost).Known
	}
	return strings.Contains(s, "butunallocated") || strings.Contains(s, "byPyTorch)") || strings.Contains(s, "cached)")
}

// ends says whether a line cannot belong to the message that goes on. The words
// of a request begin another one, unless they are awaited.
func (p *Parser) ends(line string) bool {
	t := strings.TrimSpace(line)
	for _, p := range []string{"Traceback", "File \"", "During handling", "+--", "|"} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return t == "" || startsMessage(line) && !breaksOff(p.joined.String())
}

// parseMessage reads a message whose blanks were removed.
func parseMessage(s string) (Message, bool) {
	m := Message{Device: -1, Count: 1}
	switch {
	case strings.Contains(s, startAsync):
		m.async(s)
	case strings.Contains(s, startMPS):
		m.mps(s)
	case startsHost(s):
		m.Form, m.Backend = Host, "CPU"
		m.Requested = figureAfter(s, triedHost)
		m.Cut = !m.Requested.Known
	case requestAt(s) >= 0:
		m.request(s)
	case strings.Contains(s, capacity):
		m.Backend = "CUDA"
		m.wording(s)
		m.sentences(s)
		m.Cut = true // its beginning is not there
	default:
		return m, false
	}
	return m, m.Requested.Known || m.Form == Sentences && m.Capacity.Known || m.BeyondAll || m.Form == Async && (m.Allocated.Known || m.Capacity.Known)
}

func (m *Message) async(s string) {
	m.Form, m.Backend = Async, "CUDA"
	m.device(s, "ondevice")
	m.Allocated = figureAfter(s, "Currentlyallocated:")
	m.Requested = figureAfter(s, "Requested:")
	m.Capacity = figureAfter(s, "Devicelimit:")
	m.Free = figureAfter(s, "Free(accordingtoCUDA):")
	if _, after, ok := strings.Cut(s, "memoryfraction)"); ok { // a collector's stamp may stand between
		m.Allowed = figureAfter(after, ":")
	}
	m.Cut = !m.Requested.Known || !m.Capacity.Known || !m.Free.Known || !m.Allocated.Known
}

func (m *Message) mps(s string) {
	m.Form, m.Backend = MPS, "MPS"
	m.Allocated = figureAfter(s, "MPSallocated:")
	m.Other = figureAfter(s, "otherallocations:")
	m.Allowed = figureAfter(s, "maxallowed:")
	m.Requested = figureAfter(s, tried)
	m.Cut = !m.Allowed.Known
}

func (m *Message) device(s, label string) {
	if n, ok := lines.Int(lines.NumberAfter(s, label)); ok {
		m.Device = n
	}
}

func (m *Message) request(s string) {
	at := requestAt(s)
	m.Backend = "CUDA"
	head, body := strings.TrimSuffix(s[:at], before), s[at+len(tried):]
	for _, b := range backends {
		if strings.HasSuffix(head, b) {
			m.Backend = b
		}
	}
	if _, after, ok := strings.Cut(head, "blockwithsizelargerthan"); ok {
		m.Block, _ = scanFigure(after)
		m.Backend = "XPU"
	}
	m.BeyondAll = strings.HasPrefix(body, "morethan1EB")
	m.Requested, _ = scanFigure(body)
	m.wording(body)
	paren := strings.IndexByte(body, '(')
	device := ""
	if paren >= 0 && paren < 40 {
		device = deviceOf(body[paren+1:])
	}
	switch {
	case strings.Contains(body, capacity):
		m.sentences(body)
	case device != "":
		if device != "GPU" {
			m.Backend = device
		}
		m.parenthesised(body[paren:], device)
	default:
		m.Cut = strings.HasSuffix(body, "GPU") || paren >= 0
	}
}

// wording notes by which words the version is told.
func (m *Message) wording(s string) {
	m.Expandable = strings.Contains(s, "expandable_segments")
	m.MaxSplit = strings.Contains(s, "max_split_size_mb")
	m.Misspelt = strings.Contains(s, "totalcapactyof")
}

func (m *Message) parenthesised(s, device string) {
	m.Form = Parenthesised
	m.device(s, device)
	s, closed := cutAtParen(s)
	for part := range strings.SplitSeq(s, ";") {
		f, label := scanFigure(part)
		switch {
		case !f.Known:
		case strings.HasPrefix(label, "totalcapac"):
			m.Capacity = f
		case label == "alreadyallocated":
			m.Allocated = f
		case label == "free":
			m.Free = f
		case label == "allowed":
			m.Allowed = f
		case label == "cached": // what is reserved beyond the allocated
			m.Idle, m.Cached = f, true
		case strings.HasPrefix(label, "reservedintotal"):
			m.Reserved = f
		}
	}
	// What is free was not told for an XPU in this form.
	m.Cut = !closed || !m.Capacity.Known || !m.Free.Known && m.Backend != "XPU" || !m.Allocated.Known
}

func cutAtParen(s string) (string, bool) {
	before, _, ok := strings.Cut(s, ")")
	if !ok {
		return s, false
	}
	return before, true
}

func (m *Message) sentences(s string) {
	m.Form = Sentences
	m.device(s, "GPU")
	for _, spelling := range []string{"totalcapacityof", "totalcapactyof"} {
		if f := figureAfter(s, spelling); f.Known {
			m.Capacity = f
		}
	}
	m.Free = figureAfter(s, "ofwhich")
	m.ThisProcess = m.told(figureAfter(s, "thisprocesshas"))
	m.Allowed = figureBefore(s, "allowed;")
	if m.Allocated = figureAfter(s, "Oftheallocatedmemory"); !m.Allocated.Known {
		m.Allocated = figureBefore(s, "isallocatedbyPyTorch") // retold in part
	}
	m.Private = figureBefore(s, "allocatedinprivatepools")
	m.Idle = figureBefore(s, "isreservedbyPyTorchbutunallocated")
	m.processes(s)
	m.Cut = !m.Idle.Known || !m.Allocated.Known || !m.Free.Known || !m.Capacity.Known
}

// told counts a sentence of a process, and gives its figure: where the driver
// does not know it, 2^64 bytes are printed.
func (m *Message) told(f Figure) Figure {
	if !f.Known {
		return f
	}
	m.Sentences++
	if f.Text != "" {
		m.Untold++
		return Figure{}
	}
	return f
}

// processes reads every "Process N has X memory in use".
func (m *Message) processes(s string) {
	for len(m.Processes) < 256 {
		_, after, ok := strings.Cut(s, "Process")
		if !ok {
			return
		}
		s = after
		n, rest, ok := lines.Digits(after)
		rest, has := strings.CutPrefix(rest, "has")
		f, rest := scanFigure(rest)
		if id, fits := lines.Int(n, ok); fits && has && f.Known && strings.HasPrefix(rest, "memoryinuse") {
			if f = m.told(f); f.Known {
				m.Processes = append(m.Processes, Process{id, f})
			}
		}
	}
}
