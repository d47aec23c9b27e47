package xlalog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// torn is a sentence of a TPU whose figures have not all come: people and
// terminals break it into lines.
type torn struct {
	line int
	text string
	left int // lines that may still belong to it
}

// maxTorn is of how many more lines a sentence may be made up, and maxSentence
// how long it may become in bytes.
const (
	maxTorn     = 4
	maxSentence = 1 << 14
)

// tpuFailure says whether a line holds, or begins, what a TPU's compiler or
// runtime says of memory that is not there.
func tpuFailure(s string) bool {
	for _, w := range []string{
		"Ran out of memory in memory", "That was not possible. There are ", "Scoped allocation with size ",
		"TensorCore Hbm usage:", ") would exceed memory (size=", "unlikely to have enough memory. Requires ",
	} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return loading(s) || strings.Contains(s, "Attempting to allocate ") || strings.Contains(s, "Attempting to reserve ") ||
		strings.Contains(s, "Used ") && strings.Contains(s, " capacity by ")
}

// loading: the runtime could not load a program, for whatever reason.
func loading(s string) bool {
	return strings.Contains(s, "RESOURCE_EXHAUSTED") && strings.Contains(s, "Error loading program")
}

// headless says whether a line heads a table of a report whose first line the
// text lacks.
func headless(s string) bool {
	i := strings.Index(s, "Total ")
	if i >= 0 && strings.Contains(s[i:min(len(s), i+24)], " usage >=") {
		return true
	}
	i = strings.Index(s, "Program ")
	return i >= 0 && strings.Contains(s[i:min(len(s), i+32)], " requirement ") || strings.Contains(s, "Largest program allocations in ")
}

func newCompile(num int) *Compile {
	return &Compile{Line: num, Count: 1, Utilization: -1, Fragmentation: -1}
}

// compileFailure reads the sentence, or keeps it until its rest has come.
func (p *Parser) compileFailure(num int, s string) bool {
	p.giveUp()
	c, whole := sentence(num, s)
	if whole {
		p.take(c, s)
		return true
	}
	if c.Refused != nil && c.Refused.Free == "" && c.Refused.Requested == "" && !loading(s) {
		return false
	}
	p.torn = torn{num, s[:min(len(s), maxSentence)], maxTorn}
	return true
}

// take files a report, with the tables that stand on the same line.
func (p *Parser) take(c *Compile, s string) {
	p.addCompile(c)
	if p.compile == nil {
		return
	}
	if i := strings.Index(s, "Total "+c.Space+" usage >="); i >= 0 {
		p.compileLine(s[i:])
	}
}

// begins says whether a line begins a sentence of its own rather than going on
// with one.
func begins(s string) bool {
	return loading(s) || strings.Contains(s, "Error allocating device buffer") || strings.Contains(s, "Ran out of memory in memory") && !strings.HasPrefix(strings.TrimSpace(s), "Ran out")
}

// rest adds a line to the torn sentence and says whether it was of it.
func (p *Parser) rest(s string) bool {
	t := &p.torn
	if headless(s) || begins(s) {
		p.giveUp()
		return false
	}
	joined := t.text + " " + strings.TrimSpace(s)
	if c, whole := sentence(t.line, joined); whole {
		p.torn = torn{}
		p.take(c, joined)
		return true
	}
	if t.left--; t.left == 0 || len(joined) > maxSentence {
		p.giveUp()
		return false
	}
	t.text = joined
	return false
}

// giveUp files a sentence as far as it came.
func (p *Parser) giveUp() {
	if t := p.torn; t.text != "" {
		p.torn = torn{}
		if c, _ := sentence(t.line, t.text); c.certain(t.text) {
			p.take(c, t.text)
		}
	}
}

// certain says whether a sentence without its end is a TPU's at all.
func (c *Compile) certain(s string) bool {
	if c.Refused != nil && c.Refused.Free == "" {
		return c.Refused.Buffer || strings.Contains(s, "esource exhausted") || strings.Contains(s, "RESOURCE_EXHAUSTED")
	}
	return c.Refused != nil || c.Space != ""
}

// sentence reads what a TPU says in one of its ways, and says whether it is
// all there.
func sentence(num int, s string) (c *Compile, whole bool) {
	c = newCompile(num)
	c.Newest = strings.Contains(s, "E1000") || strings.Contains(s, "E1001") || strings.Contains(s, "CompileTime")
	c.Space, _ = lines.Between(s, "memory space ", " .,;")
	switch {
	case loading(s), strings.Contains(s, "Attempting to allocate "), strings.Contains(s, "Attempting to reserve "), strings.Contains(s, "That was not possible. There are "):
		c.Space = "hbm"
		c.Refused = refusal(s)
		return c, c.Refused.Requested != "" && c.Refused.Free != ""
	case strings.Contains(s, "while allocating on stack") || strings.Contains(s, "Scoped allocation with size "):
		c.Scoped = true
		if c.Space == "" {
			c.Space, _ = lines.Between(s, "exceeded scoped ", " ")
		}
		c.Instruction, _ = lines.Between(s, "on stack for ", " ,")
		_, rest, _ := strings.Cut(s, "Scoped allocation with size ")
		c.Used = size(rest)
		c.Capacity = size(after(rest, "and limit "))
		c.Exceeded = size(after(rest, "limit by "))
	case strings.Contains(s, "TensorCore Hbm usage:"):
		c.Space = "hbm"
		c.TensorCore = size(after(s, "TensorCore Hbm usage:"))
		c.SparseCore = size(strings.TrimPrefix(after(s, "SparseCore Hbm usage"), ":"))
		c.Capacity = size(after(s, "exceeding available bytes:"))
		return c, c.Capacity != ""
	case strings.Contains(s, "unlikely to have enough memory. Requires "):
		c.Early = true
		c.Used = size(after(s, "memory. Requires "))
		c.Capacity = size(after(s, ", has "))
		return c, c.Used != "" && c.Capacity != ""
	case strings.Contains(s, "It should not be possible to run out of ") && !strings.Contains(s, "Used "):
		c.Unexpected = true // the compiler's own, without figures
		return c, c.Space != ""
	case strings.Contains(s, ") would exceed memory (size="):
		c.Used = size(after(s, "Allocation (size="))
		c.Capacity = size(after(s, "exceed memory (size="))
		c.Space, _ = lines.Between(s, "space=", ", ]")
		return c, c.Capacity != ""
	default:
		_, rest, _ := strings.Cut(s, "Used ")
		c.Used = size(rest)
		c.Capacity = size(after(rest, " of "))
		c.Exceeded = size(after(rest, "capacity by "))
		if c.Space == "" {
			c.Space, _ = lines.Between(s, "Exceeded ", " ")
		}
	}
	return c, c.Used != "" && c.Capacity != "" && c.Exceeded != ""
}

// refusal reads "Attempting to reserve 3.95G at the bottom of memory. That was
// not possible. There are 1.92G free, 0B reserved, and 1.92G reservable."
func refusal(s string) *Refusal {
	r := &Refusal{InUseBytes: -1, Bytes: -1}
	_, rest, ok := strings.Cut(s, "Attempting to allocate ")
	if !ok {
		_, rest, r.Reserve = strings.Cut(s, "Attempting to reserve ")
	}
	r.Requested = size(rest)
	_, there, _ := strings.Cut(s, "There are ")
	r.Free = size(there)
	if _, more, ok := strings.Cut(there, " free, "); ok {
		r.Reserved = size(more)
		r.Reservable = size(after(more, " and "))
	}
	r.Largest = size(after(s, "contiguous region of free memory is "))
	r.Program, _ = lines.Between(s, "Error loading program '", "'")
	r.Buffer = strings.Contains(s, "Error allocating device buffer")
	for rest := there; rest != ""; {
		var in string
		if _, in, ok = strings.Cut(rest, "("); !ok {
			break
		}
		if name, _, ok := strings.Cut(in, ")"); ok && len(name) < 32 && strings.Contains(name, "_HBM") {
			r.Device = name
			break
		}
		rest = in
	}
	return r
}

// row reads a row of the table of an older runtime.
func (r *Refusal) row(c *Compile, s string) bool {
	switch {
	case strings.Contains(s, "HBM capacity "):
		c.Capacity = size(after(s, "HBM capacity "))
	case strings.Contains(s, "Currently allocated:"):
		r.InUse, r.InUseBytes = counted(after(s, "Currently allocated:"))
	case strings.Contains(s, "Program requirement:"):
		_, r.Bytes = counted(after(s, "Program requirement:"))
	case strings.Contains(s, "Max free chunk "):
		r.Largest = size(after(s, "Max free chunk "))
	case strings.Contains(s, "Top-of-Memory reserved:"), strings.Contains(s, "Available after request:"), strings.Contains(s, "Heap allocator status:"):
	default:
		return false
	}
	return true
}

// counted reads "6.08G (   6,532,939,776 bytes)".
func counted(s string) (text string, n int64) {
	text = size(s)
	in, ok := lines.Between(s, "(", ")")
	in, bytes := strings.CutSuffix(strings.TrimSpace(strings.ReplaceAll(in, ",", "")), " bytes")
	if v, rest, ok1 := lines.Digits(in); ok && bytes && ok1 && rest == "" {
		if n, ok := lines.Int(v, true); ok {
			return text, n
		}
	}
	return text, -1
}

// rematerialized reads "Can't reduce memory use below 10.64GiB (11428802214
// bytes) by rematerialization; only reduced to 71.27GiB (… bytes), down from
// 73.51GiB (… bytes) originally".
func (p *Parser) rematerialized(num int, s string) bool {
	r := &Remat{Line: num}
	r.Target, r.TargetBytes = counted(after(s, "educe memory use below "))
	r.Reduced, r.ReducedBytes = counted(after(s, "only reduced to "))
	r.Original, r.Began = counted(after(s, "down from "))
	if r.Target == "" || r.Reduced == "" {
		return false
	}
	p.remat = r
	return true
}
