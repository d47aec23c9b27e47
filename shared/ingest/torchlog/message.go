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
	Backend string // CUDA, HIP, XPU, MPS
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
)

// The bounds of a message that is put together from lines.
const (
	maxJoined   = 1 << 13
	maxLines    = 24
	maxMessages = 1024
)

// starts are what a message is recognised by, without blanks.
const (
	startRequest = "outofmemory.Triedtoallocate"
	startMPS     = "MPSbackendoutofmemory(MPSallocated:"
	startAsync   = "wouldexceedallowedmemory.(outofmemory)"
)

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
	return strings.Contains(s, startRequest) || strings.Contains(s, startMPS) || strings.Contains(s, startAsync) || breaksOff(s)
}

// breaksOff: the line ends within the words that a message starts with.
func breaksOff(s string) bool {
	for n := len("outofmemory."); n < len(startRequest); n++ {
		if head, ok := strings.CutSuffix(s, startRequest[:n]); ok {
			return strings.HasSuffix(head, "CUDA") || strings.HasSuffix(head, "HIP") || strings.HasSuffix(head, "XPU")
		}
	}
	return false
}

// complete says whether a text without blanks holds all that a message tells.
func complete(s string) bool {
	switch {
	case strings.Contains(s, startAsync):
		_, after, ok := strings.Cut(s, "memoryfraction):")
		return ok && figureAfter(":"+after, ":").Known && (strings.HasSuffix(after, "B") || len(after) > 30)
	case strings.Contains(s, startMPS):
		_, after, ok := strings.Cut(s, "Triedtoallocate")
		return ok && strings.Contains(after, "B")
	}
	return strings.Contains(s, "butunallocated") || strings.Contains(s, "byPyTorch)") || strings.Contains(s, "cached)")
}

// ends says whether a line cannot belong to a message that goes on.
func ends(line string) bool {
	t := strings.TrimSpace(line)
	for _, p := range []string{"Traceback", "File \"", "During handling", "+--", "|"} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return t == "" || startsMessage(line)
}

// parseMessage reads a message whose blanks were removed.
func parseMessage(s string) (Message, bool) {
	m := Message{Device: -1, Count: 1}
	switch {
	case strings.Contains(s, startAsync):
		m.async(s)
	case strings.Contains(s, startMPS):
		m.mps(s)
	case strings.Contains(s, startRequest):
		m.request(s)
	default:
		return m, false
	}
	return m, m.Requested.Known || m.BeyondAll || m.Form == Async && (m.Allocated.Known || m.Capacity.Known)
}

func (m *Message) async(s string) {
	m.Form, m.Backend = Async, "CUDA"
	m.device(s, "ondevice")
	m.Allocated = figureAfter(s, "Currentlyallocated:")
	m.Requested = figureAfter(s, "Requested:")
	m.Capacity = figureAfter(s, "Devicelimit:")
	m.Free = figureAfter(s, "Free(accordingtoCUDA):")
	m.Allowed = figureAfter(s, "memoryfraction):")
	m.Cut = !m.Requested.Known || !m.Capacity.Known || !m.Free.Known || !m.Allocated.Known
}

func (m *Message) mps(s string) {
	m.Form, m.Backend = MPS, "MPS"
	m.Allocated = figureAfter(s, "MPSallocated:")
	m.Other = figureAfter(s, "otherallocations:")
	m.Allowed = figureAfter(s, "maxallowed:")
	m.Requested = figureAfter(s, "Triedtoallocate")
	m.Cut = !m.Allowed.Known
}

func (m *Message) device(s, label string) {
	if n, ok := lines.Int(lines.NumberAfter(s, label)); ok {
		m.Device = n
	}
}

func (m *Message) request(s string) {
	at := strings.Index(s, startRequest)
	m.Backend = "CUDA"
	for _, b := range []string{"HIP", "XPU"} {
		if strings.HasSuffix(s[:at], b) {
			m.Backend = b
		}
	}
	s = s[at+len(startRequest):]
	m.BeyondAll = strings.HasPrefix(s, "morethan1EB")
	m.Requested, _ = scanFigure(s)
	m.Expandable = strings.Contains(s, "expandable_segments")
	m.MaxSplit = strings.Contains(s, "max_split_size_mb")
	m.Misspelt = strings.Contains(s, "totalcapactyof")
	paren := strings.Index(s, "(GPU")
	switch {
	case strings.Contains(s, "hasatotalcapac"):
		m.sentences(s)
	case paren >= 0 && paren < 40:
		m.parenthesised(s[paren:])
	default:
		m.Cut = strings.HasSuffix(s, "GPU") || strings.Contains(s, "(")
	}
}

func (m *Message) parenthesised(s string) {
	m.Form = Parenthesised
	m.device(s, "GPU")
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
	m.Cut = !closed || !m.Capacity.Known || !m.Free.Known || !m.Allocated.Known
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
	m.ThisProcess = figureAfter(s, "thisprocesshas")
	m.Allowed = figureBefore(s, "allowed;")
	m.Allocated = figureAfter(s, "Oftheallocatedmemory")
	m.Private = figureBefore(s, "allocatedinprivatepools")
	m.Idle = figureBefore(s, "isreservedbyPyTorchbutunallocated")
	m.Processes = processes(s)
	m.Cut = !m.Idle.Known || !m.Allocated.Known || !m.Free.Known || !m.Capacity.Known
}

// processes reads every "Process N has X memory in use".
func processes(s string) (out []Process) {
	for len(out) < 256 {
		_, after, ok := strings.Cut(s, "Process")
		if !ok {
			return out
		}
		s = after
		n, rest, ok := lines.Digits(after)
		rest, has := strings.CutPrefix(rest, "has")
		f, rest := scanFigure(rest)
		if id, fits := lines.Int(n, ok); fits && has && f.Known && strings.HasPrefix(rest, "memoryinuse") {
			out = append(out, Process{id, f})
		}
	}
	return out
}
