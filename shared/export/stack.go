package export

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// Frame is one level of a stack.
type Frame struct {
	Name, File string
	Line       int64
}

// Stack appends the levels that own a block, the outermost first. The stack of
// a foreign program stands in its tensor, a frame a line, "name file:line". Of
// a run of ours the op's scopes are the levels, each with its whole path, since
// "kernel" alone says nothing. A block that nobody is named for has its
// category as its only level.
func Stack(dst []Frame, op, tensor string, c event.Category) []Frame {
	if IsStack(tensor) {
		for line := range strings.SplitSeq(tensor, "\n") {
			if line != "" {
				dst = append(dst, frame(line))
			}
		}
		return dst
	}
	name := op
	if name == "" {
		name = tensor
	}
	if name == "" {
		return append(dst, Frame{Name: "(" + c.String() + ")"})
	}
	if strings.Contains(name, " ") { // a sentence or a foreign frame, no scopes
		return append(dst, frame(name))
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '/' {
			dst = append(dst, Frame{Name: name[:i]})
		}
	}
	return append(dst, Frame{Name: name})
}

// IsStack says whether a tensor's name is a foreign program's stack.
func IsStack(tensor string) bool {
	if strings.IndexByte(tensor, '\n') >= 0 {
		return true
	}
	f := frame(tensor)
	return f.File != ""
}

// frame reads "name file:line".
func frame(s string) Frame {
	colon := strings.LastIndexByte(s, ':')
	space := strings.LastIndexByte(s[:max(colon, 0)], ' ')
	if space <= 0 {
		return Frame{Name: s}
	}
	n, err := strconv.ParseInt(s[colon+1:], 10, 64)
	if err != nil || n < 0 {
		return Frame{Name: s}
	}
	return Frame{Name: s[:space], File: s[space+1 : colon], Line: n}
}
