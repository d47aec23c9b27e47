package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// maxStackText bounds the bytes of all stacks that are told whole.
const maxStackText = 64 << 20

// op is the line of a stack to blame: the innermost one of the user's Python,
// else of any Python, else the innermost of all.
func (w *teller) op(stack uint32) event.StringID {
	if stack == 0 || int(stack) >= len(w.ops) {
		return 0
	}
	if w.ops[stack] == 0 {
		w.ops[stack] = w.strs.ID(w.s.Blame(stack))
	}
	return w.ops[stack]
}

// Blame is the frame of a stack that stands for it, as "function file.py:12".
func (s *Snapshot) Blame(stack uint32) string {
	best, rank := uint32(0), -1
	for _, n := range s.Frames(stack) {
		if r := s.line(n).rank; r > rank {
			best, rank = n, r
		}
	}
	if rank < 0 {
		return ""
	}
	file, name, line := s.Frame(best)
	return name + " " + base(file) + ":" + strconv.Itoa(line)
}

// line is a frame as text, made once, since stacks share their frames.
type line struct {
	text string // "" where it was not asked for yet: it is never empty
	rank int    // of blame
}

func (s *Snapshot) line(n uint32) *line {
	if s.lines == nil {
		s.lines = make([]line, len(s.frames))
	}
	l := &s.lines[n]
	if l.text == "" {
		file, name, number := s.Frame(n)
		l.text = name + " " + file + ":" + strconv.Itoa(number)
		l.rank = blame(file)
	}
	return l
}

// blame says how much a frame of a file is to blame: the user's Python more
// than that of libraries, Python more than C++.
func blame(file string) int {
	switch {
	case !strings.HasSuffix(file, ".py"):
		return 0
	case strings.Contains(file, "/torch/") || strings.Contains(file, "/site-packages/"):
		return 1
	default:
		return 2
	}
}

func base(file string) string {
	if i := strings.LastIndexAny(file, `/\`); i >= 0 {
		return file[i+1:]
	}
	return file
}

// stack is the whole stack, the outermost frame first, one a line.
func (w *teller) stack(stack uint32) event.StringID {
	if stack == 0 || int(stack) >= len(w.stacks) {
		return 0
	}
	if w.stacks[stack] == 0 && w.budget < maxStackText {
		text := w.s.StackText(stack)
		w.budget += len(text)
		w.stacks[stack] = w.strs.ID(text)
	}
	return w.stacks[stack]
}

// StackText is a stack as text, the outermost frame first, one a line.
func (s *Snapshot) StackText(stack uint32) string {
	frames := s.Frames(stack)
	size := len(frames)
	for _, n := range frames {
		size += len(s.line(n).text)
	}
	var b strings.Builder
	b.Grow(size)
	for i, n := range slices.Backward(frames) {
		b.WriteString(s.line(n).text)
		if i > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
