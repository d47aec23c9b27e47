package memlog

import (
	"strconv"
	"strings"
)

// parse walks the short text form: "name: value", "name { … }". It is false
// when the braces do not close, as in a line that was cut.
func (r *Record) parse(s string) bool {
	var stack [maxDepth]string
	depth := 0
	for {
		s = strings.TrimLeft(s, " ,;\t")
		switch {
		case s == "":
			return false
		case s[0] == '{' && depth == 0:
			depth, s = 1, s[1:]
			continue
		case s[0] == '}':
			if depth--; depth <= 0 {
				return depth == 0
			}
			s = s[1:]
			continue
		}
		if depth == 0 {
			return false
		}
		n := 0
		for n < len(s) && (s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z' || s[n] == '_' || s[n] >= '0' && s[n] <= '9') {
			n++
		}
		if n == 0 {
			return false
		}
		name := s[:n]
		s = strings.TrimLeft(s[n:], " ")
		if after, ok := strings.CutPrefix(s, "{"); ok || strings.HasPrefix(s, ": {") {
			if !ok {
				after = s[3:]
			}
			if depth >= maxDepth {
				return false
			}
			stack[depth] = name
			depth++
			r.opened(name, stack[depth-2])
			s = after
			continue
		}
		after, ok := strings.CutPrefix(s, ":")
		if !ok {
			return false
		}
		value, rest, ok := scalar(strings.TrimLeft(after, " "))
		if !ok {
			return false
		}
		r.field(stack[depth-1], name, value)
		s = rest
	}
}

// scalar reads a value: a quoted string, or a word.
func scalar(s string) (value, rest string, ok bool) {
	if s == "" {
		return "", "", false
	}
	if q := s[0]; q == '"' || q == '\'' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case q:
				return unescape(s[1:i]), s[i+1:], true
			}
		}
		return "", "", false
	}
	i := strings.IndexAny(s, " ,;}")
	if i < 0 {
		i = len(s)
	}
	return s[:i], s[i:], i > 0
}

// unescape undoes the C escapes that names can hold.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	if u, err := strconv.Unquote(`"` + s + `"`); err == nil {
		return u
	}
	return s
}

// opened notes what only an opening brace tells.
func (r *Record) opened(name, _ string) {
	switch name {
	case "shape":
		r.HasShape = true
	case "dim":
		if len(r.Dims) < maxDims {
			r.Dims = append(r.Dims, 0) // proto3 leaves a size of 0 out
		}
	case "allocation_description":
		r.HasBuffer = true
	}
}

func (r *Record) field(within, name, v string) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		n = 0
	}
	size := max(0, min(n, 1<<60))
	switch name {
	case "step_id":
		r.Step = n
	case "kernel_name", "operation":
		r.Kernel = v
	case "handle":
		r.Handle = v
	case "dtype":
		r.DType = v
	case "size":
		if k := len(r.Dims); within == "dim" && k > 0 {
			r.Dims[k-1] = n
		}
	case "requested_bytes":
		r.Requested = size
	case "allocated_bytes":
		r.Allocated = size
	case "num_bytes":
		r.Requested, r.Allocated = size, size
	case "allocator_name":
		r.Allocator = v
	case "allocation_id":
		r.ID = n
	case "ptr":
		r.Pointer, _ = strconv.ParseUint(v, 10, 64) // 0 when it is none
	case "deferred":
		r.Deferred = v == "true"
	}
}
