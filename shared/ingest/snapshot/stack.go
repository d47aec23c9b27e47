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
	best, rank := "", -1
	for _, n := range s.Frames(stack) {
		file, name, line := s.Frame(n)
		r := 0
		if strings.HasSuffix(file, ".py") {
			r = 1
			if !strings.Contains(file, "/torch/") && !strings.Contains(file, "/site-packages/") {
				r = 2
			}
		}
		if r > rank {
			rank = r
			best = name + " " + base(file) + ":" + strconv.Itoa(line)
		}
	}
	return best
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
	var b strings.Builder
	for i, n := range slices.Backward(s.Frames(stack)) {
		file, name, line := s.Frame(n)
		b.WriteString(name)
		b.WriteByte(' ')
		b.WriteString(file)
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(line))
		if i > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
