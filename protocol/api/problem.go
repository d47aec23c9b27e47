package api

import "strings"

// Problem is one thing wrong with a workload.
type Problem struct {
	Path    string `json:"path"`           // devices.0.preset; empty: the text as a whole
	Line    int    `json:"line,omitempty"` // in the text, from 1; 0 when there is no text
	Message string `json:"message"`        // what is wrong and what to write instead
}

// String is "line 7: devices.0.preset: message", without what is not known.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		b.WriteString("line ")
		b.WriteString(itoa(p.Line))
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems is everything wrong with a workload, in the order of its fields.
// As an error it is one problem a line. An empty list means that all is well;
// return Err, not the list itself, where an error is asked for.
type Problems []Problem

// Error is one line per problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// Err is nil for an empty list, and the list otherwise.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

func (p *Problems) add(path string, message ...string) {
	*p = append(*p, Problem{Path: path, Message: strings.Join(message, "")})
}
