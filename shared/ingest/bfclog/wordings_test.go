package bfclog

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// A small pool as every generation of the allocator would print it: one used
// chunk of 1280 bytes, a free one, a used one, and a request that fits nowhere.
const (
	poolSize  = 1 << 20
	usedBytes = 1280 + 524288
	freeBytes = poolSize - usedBytes
	asked     = 600000
	rounded   = 600064
)

// era is one generation of the text.
type era struct {
	name      string
	path      string
	stamp     bool
	oldBins   bool // free chunks only
	chunk     func(c Chunk, last bool) string
	usedFirst bool
	regions   bool
	request   []string // before the dump; continuation lines follow the first
	header    bool
	pool      string
	stats     []string
	after     string // request line after the bar
}

const corePath = "tensorflow/core/common_runtime/bfc_allocator.cc"

var statsShort = []string{
	"Limit:                     1048576",
	"InUse:                      525568",
	"MaxInUse:                   525568",
	"NumAllocs:                       7",
	"MaxAllocSize:               524288",
}

var statsLong = append(append([]string{}, statsShort...),
	"Reserved:                        0", "PeakReserved:                    0", "LargestFreeBlock:                0")

var statsText = []string{
	"Limit:                        1.00MiB", "InUse:                       513.2KiB", "MaxInUse:                    513.2KiB",
	"NumAllocs:                           7", "MaxAllocSize:                512.0KiB", "Reserved:                           0B",
	"PeakReserved:                       0B", "PeakAllocated:                    513.2KiB", "LargestFreeBlock:           510.8KiB",
}

func next(last bool) string {
	if last {
		return "18446744073709551615"
	}
	return "2"
}

var eras = []era{
	{
		name: "2016", path: "tensorflow/core/common_runtime/bfc_allocator.cc", oldBins: true, usedFirst: true,
		chunk: func(c Chunk, _ bool) string { return oldChunk(c, "Free at") }, stats: statsShort,
		after: "Ran out of memory trying to allocate 585.9KiB.  See logs for memory state.",
	},
	{
		name: "2017", path: corePath, stamp: true, usedFirst: true,
		chunk: func(c Chunk, _ bool) string { return oldChunk(c, "Free at") }, stats: statsShort,
		request: []string{"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB.  Current allocation summary follows."},
	},
	{
		name: "2018", path: corePath, stamp: true,
		chunk: func(c Chunk, _ bool) string { return oldChunk(c, "Free  at") }, stats: statsShort,
		request: []string{"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB.  Current allocation summary follows."},
	},
	{
		name: "2019", path: corePath, stamp: true, regions: true,
		chunk: func(c Chunk, last bool) string {
			return fmt.Sprintf("%s at %016X next %s of size %d", state(c, "Free "), c.Address, next(last), c.Size)
		},
		request: []string{"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB (rounded to 600064).  Current allocation summary follows."},
		pool:    "total_region_allocated_bytes_: 1048576 memory_limit_: 1048576 available bytes: 0 curr_region_allocation_bytes_: 2097152",
		stats:   statsShort,
	},
	{
		name: "2021", path: corePath, stamp: true, regions: true, header: true, chunk: newChunk(""),
		request: []string{"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB (rounded to 600064)", "Current allocation summary follows."},
		pool:    "total_region_allocated_bytes_: 1048576 memory_limit_: 1048576 available bytes: 0 curr_region_allocation_bytes_: 2097152",
		stats:   statsLong,
	},
	{
		name: "memory debugging", path: `.\` + corePath, stamp: true, regions: true, header: true,
		chunk: func(c Chunk, last bool) string {
			return fmt.Sprintf("%s at %x of size %d by op MatMul action_count 12 step 3 next %s", state(c, "Free "), c.Address, c.Size, next(last))
		},
		request: []string{"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB (rounded to 600064)", "Current allocation summary follows."},
		pool:    "total_region_allocated_bytes_: 1048576 memory_limit_: 1048576 available bytes: 0 curr_region_allocation_bytes_: 2097152",
		stats:   statsLong,
	},
	{
		name: "2023", path: "external/local_xla/xla/tsl/framework/bfc_allocator.cc", stamp: true, regions: true, header: true, chunk: newChunk(" freed_at_count 9"),
		request: []string{
			"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB (rounded to 600064)requested by op _EagerConst",
			"If the cause is memory fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. ",
			"Current allocation summary follows.", "Current allocation summary follows.",
		},
		pool:  "Total bytes in pool: 1048576 memory_limit_: 1048576 available bytes: 0 curr_region_allocation_bytes_: 2097152",
		stats: statsLong,
	},
	{
		name: "fork with two blanks", path: corePath, stamp: true, regions: true, header: true,
		chunk: func(c Chunk, last bool) string {
			return fmt.Sprintf("%s  at %x of size %d next %s", state(c, "Free "), c.Address, c.Size, next(last))
		},
		request: []string{"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB (rounded to 600064)requested by op ", "Current allocation summary follows."},
		pool:    "Total bytes in pool: 1048576 memory_limit_: 1048576 available bytes: 0 curr_region_allocation_bytes_: 2097152",
		stats:   statsLong,
	},
	{
		name: "2025", path: "external/xla/xla/tsl/framework/bfc_allocator.cc", stamp: true, regions: true, header: true,
		chunk: func(c Chunk, last bool) string {
			return fmt.Sprintf("%s at %x of size %d tag lower next %s", state(c, "Free "), c.Address, c.Size, next(last))
		},
		request: []string{
			"Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB (rounded to 600064) from the lower end requested by op dot",
			"If this is caused by memory fragmentation, the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' may improve the situation.",
			"Current allocation summary follows.",
		},
		pool:  "Allocator memory summary: rounded request 586.0KiB, total free in pool 510.8KiB, largest free chunk usable by lower end 510.8KiB, unallocated bytes 0B, pool size 1.00MiB, pool limit 1.00MiB",
		stats: statsText,
	},
}

func oldChunk(c Chunk, free string) string {
	if c.InUse {
		return fmt.Sprintf("Chunk at 0x%x of size %d", c.Address, c.Size)
	}
	return fmt.Sprintf("%s 0x%x of size %d", free, c.Address, c.Size)
}

func newChunk(tail string) func(Chunk, bool) string {
	return func(c Chunk, last bool) string {
		return fmt.Sprintf("%s at %x of size %d next %s%s", state(c, "Free "), c.Address, c.Size, next(last), tail)
	}
}

func state(c Chunk, free string) string {
	if c.InUse {
		return "InUse"
	}
	return free
}

func poolChunks(base uint64) []Chunk {
	return []Chunk{
		{Address: base, Size: 1280, InUse: true},
		{Address: base + 1280, Size: freeBytes},
		{Address: base + 1280 + freeBytes, Size: 524288, InUse: true},
	}
}

// text prints the pool in an era's words. device changes name and addresses,
// so that two dumps can be told apart.
func (e *era) text(device int) []string {
	var out []string
	line := 0
	add := func(sev, msg string) {
		p := ""
		if e.stamp {
			p = fmt.Sprintf("2023-10-02 16:36:14.%06d: ", 402900+line)
		}
		line++
		out = append(out, fmt.Sprintf("%s%s %s:%d] %s", p, sev, e.path, 600+line, msg))
	}
	name := "GPU_" + strconv.Itoa(device) + "_bfc"
	for i, r := range e.request {
		r = strings.Replace(r, "GPU_0_bfc", name, 1)
		if i == 0 {
			add("W", r)
		} else {
			out = append(out, r)
		}
	}
	if e.header {
		add("I", "BFCAllocator dump for "+name)
	}
	for _, b := range e.bins() {
		add("I", b)
	}
	add("I", "Bin for 585.9KiB was 512.0KiB, Chunk State: ")
	e.list(uint64(0x7f00_0000_0000)+uint64(device)<<32, func(s string) { add("I", s) })
	add("I", "     Summary of in-use Chunks by size: ")
	add("I", "1 Chunks of size 1280 totalling 1.2KiB")
	add("I", "1 Chunks of size 524288 totalling 512.0KiB")
	add("I", "Sum Total of in-use chunks: 513.2KiB")
	if e.pool != "" {
		add("I", e.pool)
	}
	add("I", "Stats: ")
	out = append(out, e.stats...)
	out = append(out, "")
	add("W", bar)
	if e.after != "" {
		add("W", e.after)
	}
	return out
}

var bar = "*" + strings.Repeat("_", 48) + strings.Repeat("*", 51)

func (e *era) bins() (out []string) {
	for i := range 21 {
		total, used, all, in := 0, 0, "0B", "0B"
		switch {
		case i == 10 && !e.oldBins: // 262144: the free chunk
			total, all = 1, "510.8KiB"
		case i == 10:
			total, all = 1, "510.8KiB"
		case i == 2 && !e.oldBins:
			total, used, all, in = 1, 1, "1.2KiB", "1.2KiB"
		case i == 11 && !e.oldBins:
			total, used, all, in = 1, 1, "512.0KiB", "512.0KiB"
		}
		if e.oldBins {
			out = append(out, fmt.Sprintf("Bin (%d): \tTotal Chunks: %d, Chunks in use: %d %s allocated for chunks. 0B client-requested for chunks. %s in use in bin. 0B client-requested in use in bin.", 256<<i, total, used, all, in))
		} else {
			out = append(out, fmt.Sprintf("Bin (%d): \tTotal Chunks: %d, Chunks in use: %d. %s allocated for chunks. %s in use in bin. %s client-requested in use in bin.", 256<<i, total, used, all, in, in))
		}
	}
	return out
}

func (e *era) list(base uint64, add func(string)) {
	chunks := poolChunks(base)
	if e.usedFirst {
		chunks[1], chunks[2] = chunks[2], chunks[1]
	}
	if e.regions {
		add(fmt.Sprintf("Next region of size %d", poolSize))
	}
	for i, c := range chunks {
		add(e.chunk(c, i == 2))
	}
}

// want checks a dump of device against the pool.
func (e *era) check(t *testing.T, what string, d *Dump, device int) {
	t.Helper()
	u, ub, f, fb := d.Listed()
	if u != 2 || ub != usedBytes || f != 1 || fb != freeBytes {
		t.Errorf("%s: listed %d/%d used, %d/%d free", what, u, ub, f, fb)
	}
	if d.Truncated || !d.ListComplete {
		t.Errorf("%s: taken for cut: %q", what, d.Missing)
	}
	if len(d.Regions) != 1 || d.Regions[0].Size != poolSize || d.Regions[0].Address != 0x7f00_0000_0000+uint64(device)<<32 {
		t.Errorf("%s: regions %+v", what, d.Regions)
	}
	name := "GPU_" + strconv.Itoa(device) + "_bfc"
	if e.after == "" && d.Allocator != name {
		t.Errorf("%s: allocator %q, want %q", what, d.Allocator, name)
	}
	if d.Request.Size.Text != "585.9KiB" {
		t.Errorf("%s: request %+v", what, d.Request)
	}
	if strings.Contains(strings.Join(e.request, ""), "rounded") && d.Request.Rounded != ExactSize(rounded) {
		t.Errorf("%s: rounded %+v", what, d.Request.Rounded)
	}
	if d.Bar != bar || d.Limit.N != poolSize || d.InUse.Lo > usedBytes || d.InUse.Hi < usedBytes || d.Allocs.N != 7 {
		t.Errorf("%s: bar %q, limit %+v, in use %+v, allocations %+v", what, d.Bar, d.Limit, d.InUse, d.Allocs)
	}
	if e.pool != "" && (d.Pool.N != poolSize || d.Available.N != 0 || !d.Available.Known) {
		t.Errorf("%s: pool %+v, available %+v", what, d.Pool, d.Available)
	}
	if len(d.Summary) != 2 || len(d.Bins) != 21 || d.FreeOnly != e.oldBins {
		t.Errorf("%s: %d summary rows, %d bins, free only %v", what, len(d.Summary), len(d.Bins), d.FreeOnly)
	}
}

// disguises are what pasting does to a text.
var disguises = []struct {
	name string
	f    func([]string) string
}{
	{"as printed", func(l []string) string { return strings.Join(l, "\n") + "\n" }},
	{"no final line break", func(l []string) string { return strings.Join(l, "\n") }},
	{"CRLF", func(l []string) string { return strings.Join(l, "\r\n") + "\r\n" }},
	{"quoted", func(l []string) string { return "> " + strings.Join(l, "\n> ") }},
	{"quoted twice", func(l []string) string { return "> > " + strings.Join(l, "\n> > ") }},
	{"byte order mark", func(l []string) string { return "\ufeff" + strings.Join(l, "\n") }},
	{"UTF-16", func(l []string) string {
		b := []byte{0xff, 0xfe}
		for _, c := range []byte(strings.Join(l, "\r\n")) {
			b = append(b, c, 0)
		}
		return string(b)
	}},
	{"tabs as blanks", func(l []string) string { return strings.ReplaceAll(strings.Join(l, "\n"), "\t", "        ") }},
	{"colours", func(l []string) string { return "\x1b[33m" + strings.Join(l, "\x1b[0m\n\x1b[33m") + "\x1b[0m" }},
	{"collector", func(l []string) string { return "worker-0 | " + strings.Join(l, "\nworker-0 | ") }},
	{"collector with times", func(l []string) string {
		var b strings.Builder
		for i, s := range l {
			fmt.Fprintf(&b, "2023-10-02T16:36:14.%09dZ stderr F %s\n", i*1000, s)
		}
		return b.String()
	}},
	{"progress bar before the stamp", func(l []string) string {
		var b strings.Builder
		for i, s := range l {
			if strings.Contains(s, "bfc_allocator.cc") {
				fmt.Fprintf(&b, "\r%d/100 [=====>......] - ETA: 1s - loss: 0.%d\r", i, i)
			}
			b.WriteString(s + "\n")
		}
		return b.String()
	}},
	{"progress bar glued to the stamp", func(l []string) string {
		return " 12/100 [=====>......] - ETA: 1s - loss: 0.25" + strings.Join(l, "\n")
	}},
	{"other output between", func(l []string) string {
		return "Epoch 1/10\n" + strings.Join(l, "\n") + "\nTraceback (most recent call last):\n  File \"train.py\", line 3\n"
	}},
	{"absl line before", func(l []string) string {
		return "E0528 07:02:44.350251   27487 pjrt_client.cc:2826] Execution of replica 0 failed\n" + strings.Join(l, "\n")
	}},
	{"markdown", func(l []string) string { return "```\n" + strings.Join(l, "\n") + "\n```\n" }},
}

func TestEveryEraInEveryDisguise(t *testing.T) {
	for i := range eras {
		e := &eras[i]
		for _, d := range disguises {
			log, err := Read(strings.NewReader(d.f(e.text(0))))
			if err != nil || len(log.Dumps) != 1 {
				t.Errorf("%s, %s: %d dumps, %v", e.name, d.name, len(log.Dumps), err)
				continue
			}
			e.check(t, e.name+", "+d.name, log.Dumps[0], 0)
		}
	}
}

// wrap breaks lines as a terminal of that width does.
func wrap(lines []string, width int) string {
	var b strings.Builder
	for _, s := range lines {
		for len(s) > width {
			b.WriteString(s[:width] + "\n")
			s = s[width:]
		}
		b.WriteString(s + "\n")
	}
	return b.String()
}

func TestLinesBrokenByATerminal(t *testing.T) {
	for i := range eras {
		e := &eras[i]
		for _, width := range []int{100, 120, 132, 160} {
			log, err := Read(strings.NewReader(wrap(e.text(0), width)))
			if err != nil || len(log.Dumps) != 1 {
				t.Errorf("%s at %d columns: %d dumps, %v", e.name, width, len(log.Dumps), err)
				continue
			}
			u, ub, f, fb := log.Dumps[0].Listed()
			if u != 2 || ub != usedBytes || f != 1 || fb != freeBytes {
				t.Errorf("%s at %d columns: listed %d/%d used, %d/%d free", e.name, width, u, ub, f, fb)
			}
		}
	}
}

func TestLinesGluedTogether(t *testing.T) {
	for i := range eras {
		e := &eras[i]
		lines := e.text(0)
		// The Stats block keeps its lines: without them its values would run
		// into each other.
		cut := len(lines)
		for j, s := range lines {
			if strings.HasSuffix(s, "Stats: ") {
				cut = j
			}
		}
		text := strings.Join(lines[:cut], " ") + "\n" + strings.Join(lines[cut:], "\n")
		if len(e.request) > 1 {
			continue // its continuation lines would be glued to the request
		}
		log, err := Read(strings.NewReader(text))
		if err != nil || len(log.Dumps) != 1 {
			t.Errorf("%s: %d dumps, %v", e.name, len(log.Dumps), err)
			continue
		}
		e.check(t, e.name, log.Dumps[0], 0)
	}
}

func TestTwoAllocatorsPrintAtOnce(t *testing.T) {
	for i := range eras {
		e := &eras[i]
		if !e.header {
			continue // nothing in the older texts tells the allocators apart
		}
		a, b := e.text(0), e.text(1)
		stats := 0
		for j, s := range a {
			if strings.HasSuffix(s, "Stats: ") {
				stats = j
			}
		}
		for _, prefix := range []string{"", "collector"} {
			var text []string
			pa, pb := "", ""
			if prefix != "" {
				pa, pb = "(worker pid=17) ", "(worker pid=18) "
			}
			for j := range stats {
				if j < len(e.request) { // a message's own lines stay together
					if j == 0 {
						for _, s := range a[:len(e.request)] {
							text = append(text, pa+s)
						}
						for _, s := range b[:len(e.request)] {
							text = append(text, pb+s)
						}
					}
					continue
				}
				text = append(text, pa+a[j], pb+b[j])
			}
			for _, s := range a[stats:] {
				text = append(text, pa+s)
			}
			for _, s := range b[stats:] {
				text = append(text, pb+s)
			}
			log, err := Read(strings.NewReader(strings.Join(text, "\n")))
			if err != nil || len(log.Dumps) != 2 {
				t.Errorf("%s %s: %d dumps, %v", e.name, prefix, len(log.Dumps), err)
				continue
			}
			e.check(t, e.name+" first "+prefix, log.Dumps[0], 0)
			e.check(t, e.name+" second "+prefix, log.Dumps[1], 1)
		}
	}
}

func TestSeveralDumpsInOneText(t *testing.T) {
	var text []string
	for i := range eras {
		text = append(text, eras[i].text(i)...)
	}
	log, err := Read(strings.NewReader(strings.Join(text, "\n")))
	if err != nil || len(log.Dumps) != len(eras) {
		t.Fatalf("%d dumps, want %d, %v", len(log.Dumps), len(eras), err)
	}
	for i := range eras {
		eras[i].check(t, eras[i].name, log.Dumps[i], i)
	}
}

// TestEveryCutIsNoticed cuts a dump before and after every line. What is left
// must be known to be cut, and no number may differ from the whole's.
func TestEveryCutIsNoticed(t *testing.T) {
	for i := range eras {
		e := &eras[i]
		lines := e.text(0)
		for at := 1; at < len(lines); at++ {
			for _, part := range []string{"head", "tail"} {
				text := lines[:at]
				if part == "tail" {
					text = lines[at:]
				}
				log, err := Read(strings.NewReader(strings.Join(text, "\n")))
				if err != nil {
					continue // too little left
				}
				if len(log.Dumps) != 1 {
					t.Errorf("%s, %s of %d lines: %d dumps", e.name, part, len(text), len(log.Dumps))
					continue
				}
				d := log.Dumps[0]
				intact := part == "head" && (at >= len(lines)-1 && e.after == "") ||
					part == "tail" && at < 1
				if !d.Truncated && !intact && (d.Begun() || d.Promised) {
					t.Errorf("%s, %s of %d lines: taken for whole", e.name, part, len(text))
				}
				_, ub, _, fb := d.Listed()
				if ub > usedBytes || fb > freeBytes || d.Limit.Known && d.Limit.N != poolSize || d.ListComplete && (ub != usedBytes || fb != freeBytes) {
					t.Errorf("%s, %s of %d lines: %d used, %d free, complete %v, limit %+v", e.name, part, len(text), ub, fb, d.ListComplete, d.Limit)
				}
			}
		}
	}
}

func TestMarksOfOmission(t *testing.T) {
	for mark, want := range map[string]bool{
		"...": true, "…": true, "[...]": true, "(...)": true, ". . .": false, "....": true, "[snip]": true,
		"<snip>": true, "... (many lines omitted)": true, "-": false, "---": false, "": false, "***": false,
		"Restoring skipped": false, "2 ... 3": false,
	} {
		if isGap(mark) != want {
			t.Errorf("%q: %v, want %v", mark, !want, want)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		text string
		want Tensor
	}{
		{"OOM when allocating tensor with shape[128,225,225,3]", Tensor{Shape: []int64{128, 225, 225, 3}}},
		{
			"OP_REQUIRES failed at cast_op.cc:109 : Resource exhausted: OOM when allocating tensor with shape[32,30] and type double on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
			Tensor{Shape: []int64{32, 30}, DType: "double", Device: "/job:localhost/replica:0/task:0/device:GPU:0"},
		},
		{
			"ResourceExhaustedError: OOM when allocating tensor with shape[] and type half on /d:GPU:0 by allocator GPU_0_bfc [Op:Cast] name: a/b",
			Tensor{Shape: []int64{}, DType: "half", Device: "/d:GPU:0", Op: "Cast", Node: "a/b"},
		},
		{
			"OOM when allocating tensor with shape[3,0] and type float on /d by allocator GPU_0_bfc\n\t [[{{node model/dense/MatMul}}]]",
			Tensor{Shape: []int64{3, 0}, DType: "float", Device: "/d", Node: "model/dense/MatMul"},
		},
		{
			"OOM when allocating tensor with shape[8]\n\t [[Node: c/Conv2D = Conv2D[T=DT_HALF, data_format=\"NHWC\"](a, b)]]",
			Tensor{Shape: []int64{8}, DType: "half", Op: "Conv2D", Node: "c/Conv2D"},
		},
	} {
		log, err := Read(strings.NewReader(c.text))
		if err != nil || len(log.Dumps) != 1 {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		c.want.HasShape = true
		if got := log.Dumps[0].Tensor; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v, want %+v", c.text, got, c.want)
		}
		if log.Dumps[0].Truncated {
			t.Errorf("%q: an error line alone is not a cut dump", c.text)
		}
	}
}

func TestAnErrorOfAnotherSizeIsNotThisDumps(t *testing.T) {
	text := strings.Join(eras[4].text(0), "\n") +
		"\nOOM when allocating tensor with shape[1000,1000] and type float on /d by allocator GPU_0_bfc\n" +
		"OOM when allocating tensor with shape[150000] and type float on /d by allocator GPU_0_bfc\n"
	log, err := Read(strings.NewReader(text))
	if err != nil || len(log.Dumps) != 1 {
		t.Fatal(len(log.Dumps), err)
	}
	if got := log.Dumps[0].Tensor.Shape; !reflect.DeepEqual(got, []int64{150000}) {
		t.Errorf("shape %v", got)
	}
}

// The generations without a rounded number have the printed text alone to
// compare an error with.
func TestAnErrorIsComparedWithThePrintedSize(t *testing.T) {
	text := strings.Join(eras[1].text(0), "\n") +
		"\nOOM when allocating tensor with shape[1000,1000]\nOOM when allocating tensor with shape[300,500]\n"
	log, err := Read(strings.NewReader(text))
	if err != nil || len(log.Dumps) != 1 {
		t.Fatal(len(log.Dumps), err)
	}
	d := log.Dumps[0]
	if size, ok := d.ElementSize(); !reflect.DeepEqual(d.Tensor.Shape, []int64{300, 500}) || size != 4 || !ok {
		t.Errorf("shape %v, element %d", d.Tensor.Shape, size)
	}
}

func TestALeftOutChunkIsNoticedWithoutAMark(t *testing.T) {
	var text []string
	for _, s := range eras[4].text(0) {
		if !strings.Contains(s, "Free  at") {
			text = append(text, s)
		}
	}
	log, err := Read(strings.NewReader(strings.Join(text, "\n")))
	if err != nil || len(log.Dumps) != 1 {
		t.Fatal(err)
	}
	d := log.Dumps[0]
	if c := d.Regions[0].Chunks; len(c) != 2 || c[0].Gap || !c[1].Gap || d.Regions[0].Complete || !d.Truncated {
		t.Errorf("chunks %+v, complete %v", c, d.Regions[0].Complete)
	}
}

func TestShortForms(t *testing.T) {
	const canDo = "2018-01-01 00:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:217] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.29GiB. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory is available.\n"
	log, err := Read(strings.NewReader(canDo + canDo))
	if err != nil || len(log.Notices) != 1 || log.Notices[0].Count != 2 || !log.Notices[0].NotFailure || len(log.Dumps) != 1 || !log.Dumps[0].Request.NotFailure {
		t.Errorf("%+v, %v", log.Notices, err)
	}
	log, err = Read(strings.NewReader(canDo + strings.Join(eras[4].text(0), "\n") +
		"\nW Allocator (GPU_0_bfc) ran out of memory trying to allocate 585.9KiB with freed_by_count=3."))
	if err != nil || len(log.Dumps) != 1 || log.Dumps[0].Request.FreedBy != ExactSize(3) || len(log.Notices) != 1 {
		t.Errorf("%d dumps, %+v, %v", len(log.Dumps), log.Notices, err)
	}
}

func TestDriverRefusals(t *testing.T) {
	for text, want := range map[string][2][]int64{
		"2025-07-31 20:22:43.038900: I tensorflow/stream_executor/cuda/cuda_driver.cc:763] failed to allocate 663.34M (695559424 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n" +
			"I x/cuda_driver.cc:763] failed to allocate 597.01M (626003712 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n": {{695559424, 626003712}, nil},
		"E x/cuda_driver.cc:893] failed to alloc 17179869184 bytes on host: CUDA_ERROR_OUT_OF_MEMORY\n" +
			"W x/pool_allocator.h:195] could not allocate pinned host memory of size: 17179869184\n": {nil, {17179869184, 17179869184}},
	} {
		log, err := Read(strings.NewReader(text + strings.Join(eras[4].text(0), "\n")))
		if err != nil || len(log.Dumps) != 1 {
			t.Fatal(err)
		}
		d := log.Dumps[0]
		if !reflect.DeepEqual(d.Refusals, want[0]) {
			t.Errorf("refusals %v, want %v", d.Refusals, want[0])
		}
		if len(want[1]) > 0 && len(d.Pinned) == 0 {
			t.Errorf("pinned refusals %v, want %v", d.Pinned, want[1])
		}
	}
}

func TestStreamOrderedAllocator(t *testing.T) {
	text := `2022-05-01 10:00:00.000000: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:288] gpu_async_0 cuMemAllocAsync failed to allocate 4294967296 bytes: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)
 Reported by CUDA: Free memory/Total memory: 27197440/8589934592
2022-05-01 10:00:00.000000: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:293] Stats: 
Limit:                  7000000000
InUse:                  3000000000
MaxInUse:               3000000000
NumAllocs:                     123
MaxAllocSize:           1000000000
`
	log, err := Read(strings.NewReader(text))
	if err != nil || len(log.Dumps) != 1 {
		t.Fatal(err)
	}
	d := log.Dumps[0]
	if d.Allocator != "gpu_async_0" || d.Request.Size.N != 4294967296 || d.DriverFree.N != 27197440 || d.DeviceTotal.N != 8589934592 || d.InUse.N != 3000000000 {
		t.Errorf("%+v", d)
	}
}

func TestNothingToRead(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "JSON": `{"a": [1, 2]}`, "prose": "It ran out of memory yesterday.\n", "binary": "\x7fELF\x02\x01\x01\x00\x00\xff\xfe\r\r\n\x1b[",
	} {
		if log, err := Read(strings.NewReader(text)); !errors.Is(err, ErrNothing) || len(log.Dumps) != 0 {
			t.Errorf("%s: %d dumps, %v", name, len(log.Dumps), err)
		}
	}
}

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1000: "1000B", 1024: "1.0KiB", 1280: "1.2KiB", 115200: "112.5KiB", 48182480: "45.95MiB",
		614400000: "585.94MiB", 3300000000: "3.07GiB", 4000000000: "3.72GiB", 15678832640: "14.60GiB", -1024: "-1.0KiB",
	} {
		if got := Human(n); got != want {
			t.Errorf("%d prints %s, want %s", n, got, want)
		}
	}
}

// TestSizeRangesAreTight: the bytes that a text may stand for are exactly
// those that print so.
func TestSizeRangesAreTight(t *testing.T) {
	seed := uint64(1)
	for range 20000 {
		seed = seed*6364136223846793005 + 1442695040888963407
		n := int64(seed >> (4 + seed%50))
		if n >= huge {
			continue
		}
		s, ok := ParseSize(Human(n))
		if !ok || n < s.Lo || n > s.Hi {
			t.Fatalf("%d prints %s, read as %+v", n, Human(n), s)
		}
		for _, edge := range []int64{s.Lo, s.Hi} {
			if Human(edge) != s.Text && s.Text != "" {
				t.Fatalf("%s allows %d, which prints %s", s.Text, edge, Human(edge))
			}
		}
	}
}

func TestSpaced(t *testing.T) {
	for in, want := range map[string]string{
		"7.88GiB": "7.88 GiB", "112B": "112 B", "4.00 GiB": "4.00 GiB", "": "", "GiB": "GiB", "12": "12", "f32[2]": "f32[2]", "3XYZB": "3XYZB", "2.29G": "2.29G",
	} {
		if got := Spaced(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
