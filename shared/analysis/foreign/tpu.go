package foreign

import (
	"fmt"
	"math"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/xlalog"
)

// tpuAllocation is one of the largest, with sizes worked out of its shape
// where that explains what is printed. Bytes; negative when not known.
type tpuAllocation struct {
	size, unpadded, padding int64
	expansion               float64
	shape, tile             string
}

// near says whether an exact size prints as text does, to its last digit.
func near(exact int64, text string) bool {
	printed, ok := unitText(text)
	if !ok {
		return true // nothing contradicts it
	}
	return math.Abs(float64(exact)-printed) <= 0.006*math.Max(printed, 1<<10) || unitAs(float64(exact)) == text
}

func rounded(text string) int64 {
	f, ok := unitText(text)
	if !ok || f > 1<<60 {
		return -1
	}
	return int64(math.Round(f))
}

func tpuSizes(a *xlalog.Allocation) tpuAllocation {
	t := tpuAllocation{size: rounded(a.Size), unpadded: rounded(a.Unpadded), padding: rounded(a.Padding), expansion: a.Expansion, shape: a.Shape}
	if sh, ok := xlalog.ParseShape(a.Shape); ok {
		t.shape, t.tile = sh.Plain, sh.TileAs
		plain, ok1 := sh.Bytes()
		if ok1 && near(plain, a.Unpadded) && (a.Unpadded != "" || near(plain, a.Size)) {
			t.unpadded = plain
		}
		if padded, ok := sh.Padded(); ok && near(padded, a.Size) {
			t.size = padded
		} else if a.Unpadded == "" && ok1 && near(plain, a.Size) {
			t.size = plain
		}
	}
	if a.Unpadded == "" && a.Padding == "" && t.unpadded < 0 {
		return t
	}
	if t.size >= 0 && t.unpadded >= 0 && (t.padding < 0 || near(t.size-t.unpadded, a.Padding)) {
		t.padding = max(0, t.size-t.unpadded)
	}
	if t.expansion == 0 && t.unpadded > 0 && t.size >= 0 {
		t.expansion = math.Round(10*float64(t.size)/float64(t.unpadded)) / 10
	}
	return t
}

func xlaCompile(c *xlalog.Compile) *reading.Reading {
	r := &reading.Reading{Kind: "xla-tpu-oom", Line: c.Line, Name: strings.TrimSpace("TPU memory space " + c.Space)}
	f := &r.Facts
	f.Text("format_variant", tpuVariant(c))
	f.Text("memory_space", c.Space)
	tpuRequest(f, c)
	f.Text("capacity_text", c.Capacity)
	f.Int("repeated", int64(c.Count))
	f.Text("used_text", c.Used)
	f.Text("exceeded_text", c.Exceeded)
	f.Text("total_usage_text", c.TotalUsage)
	f.Text("program_text", c.Program)
	f.Text("temp_text", c.Temp)
	f.FloatIf("temp_utilization_percent", c.Utilization, c.Utilization >= 0)
	f.FloatIf("temp_fragmentation_percent", c.Fragmentation, c.Fragmentation >= 0)
	f.Text("temp_fragmentation_text", c.FragmentationText)
	f.Text("temp_unpadded_text", c.Unpadded)
	f.Text("temp_padded_text", c.Padded)
	for _, name := range []string{"reserved", "heap_allocations", "arguments", "output", "program_reserved", "program_global", "program_scoped", "program_overlays"} {
		f.Null(name + "_text")
	}
	for _, p := range c.Parts {
		name := p.Name
		if name == "HLO temp" || !p.Program && name == "program" {
			continue
		}
		if p.Program {
			name = "program_" + name
		}
		f.Text(strings.ReplaceAll(name, " ", "_")+"_text", p.Size)
	}
	switch {
	case c.Refused != nil:
		tpuList(f, c)
		tpuRefused(r, c)
		f.Bool("truncated", c.Refused.Requested == "" || c.Refused.Free == "")
	case c.Scoped:
		tpuScoped(r, c)
		f.Bool("truncated", c.Used == "" || c.Capacity == "")
	case c.TensorCore != "":
		tpuCores(r, c)
		f.Bool("truncated", c.Capacity == "" || c.SparseCore == "")
	default:
		tpuJudge(r, c, tpuList(f, c))
		whole := c.Early || c.Unexpected || r.Verdict == "request_exceeds_device" // needs no list
		f.Bool("truncated", !whole && (c.Used == "" || c.Capacity == "" || len(c.Allocations) == 0))
	}
	return r
}

func tpuVariant(c *xlalog.Compile) string {
	s := "TPU compile-time report; sizes with K/M/G suffix meaning binary units"
	switch {
	case c.Refused != nil && c.Refused.Reserve:
		s = "TPU runtime: no room to load a program; sizes with K/M/G suffix meaning binary units"
	case c.Refused != nil:
		s = "TPU runtime: no room for a request; sizes with K/M/G suffix meaning binary units"
	case c.Scoped:
		s = "TPU compile time: the part of one instruction; sizes with K/M/G suffix meaning binary units"
	case c.TensorCore != "":
		s = "TPU compile time: TensorCore and SparseCore; sizes with K/M/G suffix meaning binary units"
	}
	if c.Newest {
		s += "; with an error code"
	}
	return s
}

// tpuList adds the largest allocations and returns what padding costs them.
func tpuList(f *reading.Facts, c *xlalog.Compile) (padding float64) {
	list := reading.List()
	for i := range c.Allocations {
		a := &c.Allocations[i]
		t := tpuSizes(a)
		var o reading.Facts
		o.Int("rank", a.Rank)
		o.IntIf("size_bytes", t.size, t.size >= 0)
		o.IntIf("unpadded_bytes", t.unpadded, t.unpadded >= 0)
		o.IntIf("padding_bytes", t.padding, t.padding >= 0)
		o.FloatIf("expansion", t.expansion, t.expansion > 0)
		o.Text("shape", t.shape)
		o.Text("tile", t.tile)
		o.Text("allocation_type", a.Type)
		list.List = append(list.List, reading.Object(o))
		if t.padding > 0 && t.expansion >= 2 {
			padding += float64(t.padding)
		}
	}
	f.Set("allocations", list)
	return padding
}

// tpuTempPadding is what padding costs all temporaries together, for a text that
// lacks the list; 0 where it is less than what is padded.
func tpuTempPadding(c *xlalog.Compile) float64 {
	plain, ok1 := unitText(c.Unpadded)
	padded, ok2 := unitText(c.Padded)
	if !ok1 || !ok2 || padded < 2*plain {
		return 0
	}
	return padded - plain
}

func whose(c *xlalog.Compile) string {
	if len(c.Allocations) == 0 {
		return "the temporaries"
	}
	return "the largest allocations"
}

func tpuJudge(r *reading.Reading, c *xlalog.Compile, padding float64) {
	f := &r.Facts
	used, ok1 := unitText(c.Used)
	capacity, ok2 := unitText(c.Capacity)
	if len(c.Allocations) == 0 {
		padding = tpuTempPadding(c)
	}
	fits := ok1 && ok2 && padding > 0 && used-padding <= capacity
	if ok1 && padding > 0 {
		f.Text("used_without_this_padding_text", unitAs(max(0, used-padding)))
		f.Bool("fits_without_this_padding", fits)
	} else {
		f.Null("used_without_this_padding_text")
		f.Null("fits_without_this_padding")
	}
	tpuRows(r, "used", c.Used, "capacity", c.Capacity, "program", c.Program)
	if padding > 0 {
		what := "padding of the largest"
		if len(c.Allocations) == 0 {
			what = "padding of the temporaries"
		}
		r.Row(what, event.FormatBytes(int64(padding)))
	}
	tpuLargest(r, c)
	switch {
	case c.Unexpected:
		r.Verdict = "program_exceeds_device"
		r.Why = "The compiler ran out of " + c.Space + ", its scratch memory, which by its own words should not be possible; it tells no figures."
		r.Next = []string{"Report it to XLA with the program. Around it: a smaller batch, or fewer ops that can be fused into one at the instruction that it names."}
		return
	case c.Early && ok1 && ok2:
		r.Verdict = "program_exceeds_device"
		r.Why = fmt.Sprintf("The compiler gave up before planning: the program requires %s, and %s is available.", spelt(c.Used), spelt(c.Capacity))
		r.Next = []string{"Look for an array of far too large a shape; else a smaller batch, rematerialisation, 16-bit types, or more devices."}
		return
	case !ok1 || !ok2:
		r.Verdict = "undetermined_truncated"
		r.Why = "The line with use and capacity is not in the text, or is cut."
	case c.Exceeded == "" && used > capacity && c.Program == "": // "Allocation (size=N) would exceed memory (size=N)"
		r.Verdict = "request_exceeds_device"
		r.Why = fmt.Sprintf("One allocation of %s is more than the whole memory of %s.", event.FormatBytes(int64(used)), event.FormatBytes(int64(capacity)))
		r.Next = []string{"Make that one array smaller: a smaller batch, computation in pieces, 16-bit types, or a split over devices."}
	case fits:
		r.Verdict = "padding_expansion"
		r.Why = fmt.Sprintf("Padding to whole tiles costs %s %s; without it %s would remain, which fits %s.", whose(c), event.FormatBytes(int64(padding)), event.FormatBytes(int64(used-padding)), spelt(c.Capacity))
		r.Next = []string{"Change the layout: put a long dimension last (a multiple of 128), and merge or move the short ones."}
	default:
		r.Verdict = "program_exceeds_device"
		r.Why = fmt.Sprintf("The compiled program needs %s of %s.", spelt(c.Used), spelt(c.Capacity))
		if padding > 0 {
			r.Why += fmt.Sprintf(" Padding costs %s %s, which alone does not explain it.", whose(c), event.FormatBytes(int64(padding)))
			r.Secondary = "padding_expansion"
		}
		r.Next = []string{"A smaller batch, rematerialisation, 16-bit types, or more devices."}
	}
	if len(c.Allocations) == 0 && r.Verdict != "request_exceeds_device" { // one allocation needs no list
		r.Open = append(r.Open, "The list of the largest allocations is not in the text.")
	}
	if r.Verdict == "request_exceeds_device" {
		return
	}
	r.Open = append(r.Open, "Whether another layout is possible is the compiler's matter; no rerun can verify this.")
}

// tpuLargest names the largest allocations, the culprits: shape, size, what
// padding makes of it, and whose it is.
func tpuLargest(r *reading.Reading, c *xlalog.Compile) {
	for i := range min(len(c.Allocations), mostBuffers) {
		a := &c.Allocations[i]
		t := tpuSizes(a)
		s := spelt(a.Size)
		if t.shape != "" {
			s += " " + t.shape
		}
		r.Row(fmt.Sprintf("allocation %d", a.Rank), s)
		if t.padding > 0 && t.unpadded >= 0 && t.expansion > 0 {
			r.Row("  without padding", fmt.Sprintf("%s, %g times as large with it", event.FormatBytes(t.unpadded), t.expansion))
		}
		if a.OpName != "" {
			r.Row("  of op", a.OpName)
		}
	}
	if n := len(c.Allocations) - mostBuffers; n > 0 {
		r.Row("more allocations", fmt.Sprintf("%d smaller ones", n))
	}
}

// spelt writes the compiler's "31.00G" as "31.00 GiB", which it means.
func spelt(text string) string {
	if n := len(text) - 1; n > 0 && strings.IndexByte("KMGTPE", text[n]) >= 0 {
		return text[:n] + " " + text[n:] + "iB"
	}
	return text
}
