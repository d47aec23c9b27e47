package device

import (
	"fmt"
	"strconv"
	"strings"
)

// Name is a device name or a pattern: every field may be unset. The zero
// value is unconstrained. Fields are compared with ==.
type Name struct {
	Job     string // "" when unset
	Type    string // CPU, GPU; "" when unset; case kept
	Replica int    // any of the numbers: Unset when unset
	Task    int
	ID      int
}

// Unset is the value of a numeric field that a pattern leaves open.
const Unset = -1

// Anywhere is the pattern that every device matches.
var Anywhere = Name{Replica: Unset, Task: Unset, ID: Unset}

// Local is the full name of a device of this process.
func Local(typ string, id int) Name {
	return Name{Job: "localhost", Type: typ, ID: id}
}

// ParseName reads a full or partial device name by TensorFlow's grammar
// (device_name_utils.cc): "/job:J/replica:R/task:T/device:TYPE:ID" in any
// order, later parts winning, * clearing a field, and the short forms /cpu:0,
// /CPU:0, /gpu:0, /GPU:0.
func ParseName(s string) (Name, error) {
	n := Anywhere
	if s == "" || s == "/" {
		return n, nil
	}
	for rest := s; rest != ""; {
		part := rest
		if !strings.HasPrefix(part, "/") {
			return Anywhere, badName(s, rest)
		}
		part, rest = cutPart(part[1:])
		if !n.set(part) {
			return Anywhere, badName(s, part)
		}
	}
	return n, nil
}

func badName(s, part string) error {
	return &Error{
		Kind: InvalidArgument, Device: strconv.Quote(s), Setting: "device name",
		Message: fmt.Sprintf("cannot parse %q; write /GPU:0, /CPU:0 or /job:localhost/replica:0/task:0/device:GPU:0", part),
	}
}

func cutPart(s string) (part, rest string) {
	if i := strings.IndexByte(s, '/'); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// set applies one part such as "job:worker".
func (n *Name) set(part string) bool {
	key, value, ok := strings.Cut(part, ":")
	if !ok {
		return false
	}
	switch key {
	case "job":
		if value == "*" {
			n.Job = ""
			return true
		}
		n.Job = value
		return isWord(value)
	case "replica":
		return setNumber(&n.Replica, value)
	case "task":
		return setNumber(&n.Task, value)
	case "cpu", "CPU", "gpu", "GPU":
		n.Type = strings.ToUpper(key)
		return setNumber(&n.ID, value)
	case "device":
		return n.setDevice(value)
	}
	return false
}

func (n *Name) setDevice(value string) bool {
	typ, id, hasID := strings.Cut(value, ":")
	if typ == "*" {
		n.Type = ""
	} else {
		if !isWord(typ) {
			return false
		}
		n.Type = typ
	}
	if !hasID {
		n.ID = Unset
		return true
	}
	return setNumber(&n.ID, id)
}

func setNumber(field *int, s string) bool {
	if s == "*" {
		*field = Unset
		return true
	}
	v, ok := number(s)
	if ok {
		*field = v
	}
	return ok
}

func number(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	v, err := strconv.Atoi(s)
	return v, err == nil
}

func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

// ParseLocal reads the form without slash, TYPE:N, in which the id is
// required.
func ParseLocal(s string) (Name, error) {
	typ, id, ok := strings.Cut(s, ":")
	n := Anywhere
	v, isNumber := number(id)
	if !ok || !isWord(typ) || !isNumber {
		return Anywhere, &Error{Kind: InvalidArgument, Device: strconv.Quote(s), Setting: "local device name", Message: "want TYPE:N, such as GPU:0"}
	}
	n.Type, n.ID = typ, v
	return n, nil
}

// String prints the fields that are set, in the order job, replica, task,
// device; "" when none is.
func (n Name) String() string {
	var b strings.Builder
	if n.Job != "" {
		b.WriteString("/job:" + n.Job)
	}
	if n.Replica != Unset {
		b.WriteString("/replica:" + strconv.Itoa(n.Replica))
	}
	if n.Task != Unset {
		b.WriteString("/task:" + strconv.Itoa(n.Task))
	}
	if n.Type == "" && n.ID == Unset {
		return b.String()
	}
	typ := n.Type
	if typ == "" {
		typ = "*"
	}
	b.WriteString("/device:" + typ)
	if n.ID == Unset {
		b.WriteString(":*")
	} else {
		b.WriteString(":" + strconv.Itoa(n.ID))
	}
	return b.String()
}

// Short is the name as people write it within one process: /GPU:0.
func (n Name) Short() string {
	if n.Type == "" || n.ID == Unset {
		return n.String()
	}
	return "/" + n.Type + ":" + strconv.Itoa(n.ID)
}

// IsFull says whether every field is set.
func (n Name) IsFull() bool {
	return n.Job != "" && n.Replica != Unset && n.Task != Unset && n.Type != "" && n.ID != Unset
}

// Matches says whether every field that the pattern sets equals that of full.
func (n Name) Matches(full Name) bool {
	return (n.Job == "" || n.Job == full.Job) &&
		(n.Replica == Unset || n.Replica == full.Replica) &&
		(n.Task == Unset || n.Task == full.Task) &&
		(n.Type == "" || n.Type == full.Type) &&
		(n.ID == Unset || n.ID == full.ID)
}

// Canonicalise completes s from base, which must be full. The local form
// TYPE:N is tried first.
func Canonicalise(s string, base Name) (Name, error) {
	if !base.IsFull() {
		return Anywhere, fmt.Errorf("canonicalise device name %q: base %q is not a full name", s, base)
	}
	n, err := ParseLocal(s)
	if err != nil {
		if n, err = ParseName(s); err != nil {
			return Anywhere, err
		}
	}
	if n.Job == "" {
		n.Job = base.Job
	}
	fill(&n.Replica, base.Replica)
	fill(&n.Task, base.Task)
	if n.Type == "" {
		n.Type = base.Type
	}
	fill(&n.ID, base.ID)
	return n, nil
}

func fill(field *int, v int) {
	if *field == Unset {
		*field = v
	}
}

// Conflict says what Merge does when type or id differ.
type Conflict uint8

// The ways to treat a conflict of type or id. Job, replica and task always
// conflict hard.
const (
	Hard     Conflict = iota // an error
	Soft                     // the request gives way: the field is forgotten, and with the type the id
	Override                 // the other side wins
)

// Merge returns target narrowed by other. Nothing of a failed merge sticks.
func Merge(target, other Name, c Conflict) (Name, error) {
	n := target
	if n.Job == "" {
		n.Job = other.Job
	} else if other.Job != "" && other.Job != n.Job {
		return target, incompatible("jobs", target, other)
	}
	if !mergeNumber(&n.Replica, other.Replica) {
		return target, incompatible("replicas", target, other)
	}
	if !mergeNumber(&n.Task, other.Task) {
		return target, incompatible("tasks", target, other)
	}
	switch {
	case n.Type == "" || other.Type == "" || n.Type == other.Type:
		if n.Type == "" {
			n.Type = other.Type
		}
	case c == Hard:
		return target, incompatible("types", target, other)
	case c == Soft:
		n.Type, n.ID = "", Unset
		return n, nil
	default:
		n.Type = other.Type
	}
	if !mergeNumber(&n.ID, other.ID) {
		switch c {
		case Hard:
			return target, incompatible("ids", target, other)
		case Soft:
			n.ID = Unset
		default:
			n.ID = other.ID
		}
	}
	return n, nil
}

func mergeNumber(field *int, other int) bool {
	if other == Unset || *field == other {
		return true
	}
	if *field != Unset {
		return false
	}
	*field = other
	return true
}

func incompatible(what string, a, b Name) error {
	return &Error{
		Kind: InvalidArgument, Device: strconv.Quote(a.String()), Setting: "device name",
		Message: fmt.Sprintf("cannot merge devices with incompatible %s: %q and %q", what, a, b),
	}
}
