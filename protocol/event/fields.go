package event

import (
	"fmt"
	"strconv"
	"strings"
)

// Field is one named value of a facts or settings event.
type Field struct {
	Key   string // dotted path: "devices.0.preset"
	Value string
}

// Fields is an ordered list of named values, the payload of Settings,
// DeviceFacts and AllocatorFacts. Its text form is one key=value a line; a
// value with a line break or a leading quote is written as a Go string
// literal. It exists so that the browser needs no JSON reader.
type Fields []Field

// Get returns the value of key and whether it is there.
func (f Fields) Get(key string) (string, bool) {
	for i := range f {
		if f[i].Key == key {
			return f[i].Value, true
		}
	}
	return "", false
}

// Text returns the value of key, or "".
func (f Fields) Text(key string) string { v, _ := f.Get(key); return v }

// Int returns the value of key as a number, or 0.
func (f Fields) Int(key string) int64 {
	n, _ := strconv.ParseInt(f.Text(key), 10, 64)
	return n
}

// Set replaces the value of key, or appends it.
func (f *Fields) Set(key, value string) {
	for i := range *f {
		if (*f)[i].Key == key {
			(*f)[i].Value = value
			return
		}
	}
	*f = append(*f, Field{key, value})
}

// Encode writes the text form.
func (f Fields) Encode() string {
	var b strings.Builder
	for _, x := range f {
		b.WriteString(x.Key)
		b.WriteByte('=')
		if strings.ContainsAny(x.Value, "\n\r") || strings.HasPrefix(x.Value, `"`) {
			b.WriteString(strconv.Quote(x.Value))
		} else {
			b.WriteString(x.Value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ParseFields reads what Encode wrote. An error names the line.
func ParseFields(s string) (Fields, error) {
	var f Fields
	for n, line := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return f, fmt.Errorf("fields, line %d: %q has no '='", n+1, line)
		}
		if strings.HasPrefix(value, `"`) {
			v, err := strconv.Unquote(value)
			if err != nil {
				return f, fmt.Errorf("fields, line %d: bad quoted value of %s", n+1, key)
			}
			value = v
		}
		f = append(f, Field{key, value})
	}
	return f, nil
}
