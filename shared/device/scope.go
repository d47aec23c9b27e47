package device

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseScope reads what users give tf.device: parts between slashes, such as
// "GPU:1", "/gpu", "/job:worker/task:0/device:GPU:*". It is more lenient than
// ParseName in case and short forms, and stricter about "device:GPU", which
// needs an id. ValueError.
func ParseScope(s string) (Name, error) {
	n := Anywhere
	for part := range strings.SplitSeq(s, "/") {
		key, rest, _ := strings.Cut(part, ":")
		if key == "" {
			continue
		}
		if err := n.scopePart(part, key, rest); err != nil {
			return Anywhere, &Error{Kind: ValueError, Device: strconv.Quote(s), Setting: "device scope", Message: err.Error()}
		}
	}
	return n, nil
}

func (n *Name) scopePart(part, key, rest string) error {
	fields := strings.Count(part, ":") + 1
	switch upper := strings.ToUpper(key); {
	case fields == 2 && key == "job":
		n.Job = rest
		return nil
	case fields == 2 && key == "replica":
		return scopeNumber(&n.Replica, part, rest)
	case fields == 2 && key == "task":
		return scopeNumber(&n.Task, part, rest)
	case fields <= 2 && (upper == "CPU" || upper == "GPU" || upper == "TPU" || upper == "CUSTOM"):
		return n.scopeDevice(part, upper, rest, fields == 2)
	case fields == 3 && key == "device":
		typ, id, _ := strings.Cut(rest, ":")
		if typ == "cpu" || typ == "gpu" {
			typ = strings.ToUpper(typ)
		}
		return n.scopeDevice(part, typ, id, true)
	}
	return fmt.Errorf("unknown attribute %q; write GPU:0, /CPU:0 or /device:GPU:0", part)
}

func (n *Name) scopeDevice(part, typ, id string, hasID bool) error {
	if n.Type != "" {
		return fmt.Errorf("cannot set two device types: %s and %s", n.Type, typ)
	}
	n.Type = typ
	if !hasID || id == "*" {
		return nil
	}
	return scopeNumber(&n.ID, part, id)
}

func scopeNumber(field *int, part, s string) error {
	v, ok := number(s)
	if !ok {
		return fmt.Errorf("%q in %q is not a whole number", s, part)
	}
	*field = v
	return nil
}

// Enter is the scope within n that s opens: field by field, what s says
// replaces what n said. "" and "/" change nothing. The eager outermost
// scope is Local("CPU", 0), so "GPU" there means /GPU:0, and "/CPU" within
// "/GPU:1" means /CPU:1.
func (n Name) Enter(s string) (Name, error) {
	in, err := ParseScope(s)
	if err != nil {
		return n, err
	}
	if in.Job != "" {
		n.Job = in.Job
	}
	if in.Type != "" {
		n.Type = in.Type
	}
	for _, f := range []struct{ to, from *int }{{&n.Replica, &in.Replica}, {&n.Task, &in.Task}, {&n.ID, &in.ID}} {
		if *f.from != Unset {
			*f.to = *f.from
		}
	}
	return n, nil
}
