// Package placelog reads where TensorFlow put the ops of a program: the lines of
// log_device_placement, of graphs and of eager execution, and the errors and
// warnings about ops that could not be put where they were asked to be.
//
// It tells nothing of memory. Which of the ops matter is decided in package
// analysis/foreign. Memory is bounded: a repeated line is counted, and lists end
// at limits that the report names.
package placelog

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/shared/ingest/lines"
)

// ErrNothing says that the text tells of no op's device.
var ErrNothing = errors.New("no device of an op in it")

const (
	maxDevices  = 64
	maxTypes    = 4096  // of ops, a device
	maxOps      = 4096  // kept that are not on a GPU
	maxNames    = 65536 // of nodes that are told apart, and of scopes
	maxRefusals = 256
	maxName     = 512
)

// Read reads a text to its end.
func Read(r io.Reader) (*Report, error) {
	p := New()
	if err := lines.Each(r, func(n int, s string) { p.Line(n, s) }); err != nil {
		return p.End(), err
	}
	rep := p.End()
	if rep.Empty() {
		return rep, ErrNothing
	}
	return rep, nil
}

// list is what the next lines may be rows of.
type list uint8

const (
	nothing list = iota
	types        // "Switch: GPU CPU"
	members      // "  a/b (Switch) /device:GPU:0"
)

// Parser takes a text line by line.
type Parser struct {
	rep    Report
	at     map[string]int // an op's place in rep.Ops
	open   list
	blocks string // the type that keeps the open group off the GPU
	eager  int    // one more than the op executed last, where that is kept
	onGPU  bool   // the op executed last was on a GPU
}

// New is a parser that has seen nothing.
func New() *Parser {
	return &Parser{rep: Report{groups: map[string]string{}, onGPU: map[string]int{}, seen: map[string]bool{}}, at: map[string]int{}}
}

// End gives what was read. Nothing may follow.
func (p *Parser) End() *Report {
	if p.rep.dropped {
		p.rep.Cut = fmt.Sprintf("more than %d devices, %d types or %d names of ops; the rest is not told apart", maxDevices, maxTypes, maxNames)
	}
	return &p.rep
}

// Line takes the next line, without its end, and says whether it was read.
func (p *Parser) Line(num int, s string) bool {
	if p.open != nothing && p.row(s) {
		return true
	}
	p.open = nothing
	switch {
	case strings.Contains(s, "Colocation group had the following types"):
		p.open, p.blocks = types, ""
		p.found(num)
		return true
	case strings.Contains(s, "Colocation members"):
		p.open = members
		return true
	case strings.Contains(s, "without changing the devices of some"):
		p.rep.Moved = true
		p.found(num)
		return true
	case strings.Contains(s, "annot assign a device "):
		return p.refusal(num, s)
	case strings.Contains(s, "Executing op "):
		return p.executed(num, s)
	}
	return p.placed(num, s)
}

func (p *Parser) found(num int) {
	if p.rep.Line == 0 {
		p.rep.Line = num
	}
}

// placed reads "a/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:CPU:0"
// and its older forms.
func (p *Parser) placed(num int, s string) bool {
	i := strings.Index(s, "/job:")
	if i <= 0 {
		return false
	}
	device, ok := deviceOf(strings.TrimRight(s[i:], " \t"))
	if !ok {
		return false
	}
	head, ok := strings.CutSuffix(s[:i], ": ")
	if !ok && !strings.HasSuffix(head, ")") {
		return false
	}
	name, typ := head, ""
	if strings.HasSuffix(head, ")") {
		at := strings.LastIndex(head, ": (")
		if at < 0 {
			return false
		}
		name, typ = head[:at], head[at+len(": ("):len(head)-1]
		if !word(typ) {
			return false
		}
	} else if !strings.Contains(s, "placer") { // only a log's prefix tells it from anything else
		return false
	}
	if at := strings.LastIndexAny(name, " \t"); at >= 0 {
		name = name[at+1:]
	}
	if name == "" || len(name) > maxName {
		return false
	}
	p.found(num)
	if k := name + "\x00" + device; p.rep.seen[k] {
		return true // of another run of the same graph
	} else if len(p.rep.seen) < maxNames {
		p.rep.seen[k] = true
	} else {
		p.rep.dropped = true
	}
	p.count(device, typ)
	if GPU(device) {
		if at := scope(name); len(p.rep.onGPU) < maxNames || p.rep.onGPU[at] > 0 {
			p.rep.onGPU[at]++
		}
		return true
	}
	p.keep(Op{Name: name, Type: typ, Device: device, Line: num, Count: 1})
	return true
}

// executed reads "Executing op MatMul in device /job:localhost/…/device:GPU:0".
func (p *Parser) executed(num int, s string) bool {
	_, rest, _ := strings.Cut(s, "Executing op ")
	typ, rest, ok := strings.Cut(rest, " in device ")
	if !ok || !word(typ) || len(typ) > maxName {
		return false
	}
	device, ok := deviceOf(strings.TrimRight(rest, " \t"))
	if !ok {
		return false
	}
	p.found(num)
	p.count(device, typ)
	on := GPU(device)
	if on {
		if p.eager > 0 && !p.onGPU {
			p.rep.Ops[p.eager-1].Beside++
		}
		p.eager, p.onGPU = 0, true
		return true
	}
	p.eager = p.keep(Op{Type: typ, Device: device, Line: num, Count: 1})
	if p.onGPU && p.eager > 0 {
		p.rep.Ops[p.eager-1].Beside++
		p.eager = 0 // counted already, whatever follows
	}
	p.onGPU = false
	return true
}

// keep notes an op that is not on a GPU, and returns one more than its place.
func (p *Parser) keep(o Op) int {
	k := o.Name + "\x00" + o.Type + "\x00" + o.Device
	if i, ok := p.at[k]; ok {
		p.rep.Ops[i].Count++
		return i + 1
	}
	if len(p.rep.Ops) == maxOps {
		p.rep.More++
		return 0
	}
	p.at[k] = len(p.rep.Ops)
	p.rep.Ops = append(p.rep.Ops, o)
	return len(p.rep.Ops)
}

func (p *Parser) count(device, typ string) {
	r := &p.rep
	at := -1
	for i := range r.Devices {
		if r.Devices[i].Name == device {
			at = i
		}
	}
	if at < 0 {
		if len(r.Devices) == maxDevices {
			r.dropped = true
			return
		}
		at = len(r.Devices)
		r.Devices = append(r.Devices, Device{Name: device, byRow: map[string]int{}})
	}
	d := &r.Devices[at]
	d.Ops++
	if typ == "" {
		return
	}
	i, ok := d.byRow[typ]
	if !ok {
		if len(d.Types) == maxTypes {
			r.dropped = true
			return
		}
		i = len(d.Types)
		d.byRow[typ] = i
		d.Types = append(d.Types, Type{Name: typ})
	}
	d.Types[i].Count++
}

// refusal reads "Cannot assign a device for operation 'a/b': Could not satisfy
// explicit device specification '/device:GPU:0' because no supported kernel for
// GPU devices is available."
func (p *Parser) refusal(num int, s string) bool {
	_, rest, _ := strings.Cut(s, "annot assign a device ")
	name := ""
	for _, h := range []string{"for operation ", "to node "} {
		if after, ok := strings.CutPrefix(rest, h); ok {
			name, rest, _ = strings.Cut(after, ":")
			name = strings.Trim(name, "'\" ")
		}
	}
	if name == "" || len(name) > maxName || strings.ContainsAny(name, " \t") {
		return false
	}
	p.found(num)
	p.rep.Refuses++
	x := Refusal{Op: name, Line: num}
	for _, h := range []string{"device specification '", "explicitly assigned to ", "assigned to "} {
		if want, ok := lines.Between(rest, h, "' "); ok && len(want) < maxName {
			x.Wanted = short(want)
			break
		}
	}
	if kind, ok := lines.Between(rest, "no supported kernel for ", " "); ok && word(kind) {
		x.NoKernel = kind
	}
	x.NoDevice = strings.Contains(rest, "no devices matching") || strings.Contains(rest, "available devices are") || strings.Contains(rest, "not a valid device")
	if want, ok := lines.Between(rest, "required incompatible device '", "' "); ok && len(want) < maxName {
		x.Group = short(want)
	}
	for i := range p.rep.Refused {
		if o := &p.rep.Refused[i]; o.Op == x.Op && o.Wanted == x.Wanted {
			return true
		}
	}
	if len(p.rep.Refused) < maxRefusals {
		p.rep.Refused = append(p.rep.Refused, x)
	}
	return true
}

// row reads a row of the list that is open.
func (p *Parser) row(s string) bool {
	t := strings.TrimSpace(s)
	if p.open == types {
		if strings.HasPrefix(t, "Root Member(") {
			return true
		}
		name, kinds, ok := strings.Cut(t, ": ")
		if !ok && strings.HasSuffix(t, ":") {
			name, ok = t[:len(t)-1], true // no device at all
		}
		if !ok || !word(name) {
			return false
		}
		gpu := false
		for k := range strings.FieldsSeq(kinds) {
			if !word(k) {
				return false
			}
			gpu = gpu || k == "GPU"
		}
		if !gpu && kinds != "" {
			if p.blocks == "" {
				p.blocks = name
			}
			if !p.rep.HasNoGPU(name) && len(p.rep.NoGPU) < maxTypes {
				p.rep.NoGPU = append(p.rep.NoGPU, name)
			}
		}
		return true
	}
	name, rest, ok := strings.Cut(t, " (")
	if !ok || strings.ContainsAny(name, " \t") || name == "" || len(name) > maxName {
		return false
	}
	typ, _, ok := strings.Cut(rest, ")")
	if !ok || !word(typ) {
		return false
	}
	if p.blocks != "" && len(p.rep.groups) < maxNames {
		p.rep.groups[name] = p.blocks
	}
	return true
}

// deviceOf reads a device's whole name, which ends the line.
func deviceOf(s string) (string, bool) {
	if !strings.HasPrefix(s, "/job:") || len(s) > maxName || strings.ContainsAny(s, " \t'\"[]()") {
		return "", false
	}
	d := short(s)
	i := strings.LastIndexByte(d, '/')
	kind, num, ok := strings.Cut(d[i+1:], ":")
	if _, rest, digits := lines.Digits(num); !ok || !digits || rest != "" || !word(kind) {
		return "", false
	}
	return d, true
}

// short is a device's name without what is the same for all of one process.
func short(s string) string {
	s = strings.TrimPrefix(s, "/job:localhost/replica:0/task:0")
	s = strings.TrimPrefix(s, "/")
	i := strings.LastIndexByte(s, '/') + 1
	last := strings.TrimPrefix(s[i:], "device:")
	for _, old := range []string{"cpu", "gpu"} { // before 2017
		if rest, ok := strings.CutPrefix(last, old+":"); ok {
			last = strings.ToUpper(old) + ":" + rest
		}
	}
	return s[:i] + last
}

func word(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && (i == 0 || !lines.IsDigit(c)) {
			return false
		}
	}
	return s != ""
}
