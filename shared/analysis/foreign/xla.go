package foreign

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/driverlog"
	"tideline/shared/ingest/xlalog"
)

// XLA judges the failures of XLA programs, each with the dump of the
// allocator's own text that belongs to it, and with what its client said of the
// pool. claimed says of each dump whether it was told as part of a failure here.
func XLA(rep *xlalog.Report, log *bfclog.Log, card *driverlog.Report) (out []*reading.Reading, claimed []bool) {
	var dumps []*bfclog.Dump
	if log != nil {
		dumps = log.Dumps
	}
	claimed = make([]bool, len(dumps))
	for _, f := range rep.Failures {
		d := match(f, dumps, claimed)
		out = append(out, xlaFailure(f, d, card))
		for n := 1; n < f.Count && d != nil; n++ { // the same message again
			if claimAgain(d, dumps, claimed) {
				continue
			}
			// Of several devices, each has its allocator's lines.
			other := match(f, dumps, claimed)
			if other == nil {
				break
			}
			out = append(out, xlaFailure(f, other, card))
		}
	}
	for _, c := range rep.Compiles {
		out = append(out, xlaCompile(c))
	}
	if len(out) == 0 && len(rep.Remats) > 0 {
		out = append(out, xlaRemat(&rep.Remats[len(rep.Remats)-1]))
	}
	// What XLA itself printed as one more error is no dump of its own.
	for i, d := range dumps {
		if !claimed[i] && len(rep.Failures) > 0 && d.Request.Op == "" && !d.Begun() && d.Allocator == "" && d.Request.Bytes.Known {
			claimed[i] = true
		}
	}
	return out, claimed
}

// claimAgain claims one more short form of the same request.
func claimAgain(of *bfclog.Dump, dumps []*bfclog.Dump, claimed []bool) bool {
	for i, d := range dumps {
		if !claimed[i] && !d.Begun() && d.Allocator == of.Allocator && d.Request.Size.Text == of.Request.Size.Text && d.Request.Rounded == of.Request.Rounded {
			claimed[i] = true
			return true
		}
	}
	return false
}

// match finds the dump of a failure: the same bytes, or the same printed size.
func match(f *xlalog.Failure, dumps []*bfclog.Dump, claimed []bool) *bfclog.Dump {
	for i, d := range dumps {
		if claimed[i] || f.Allocator != "" && d.Allocator != "" && f.Allocator != d.Allocator {
			continue
		}
		q := &d.Request
		fits := false
		switch {
		case f.Bytes >= 0 && q.Bytes.Known:
			fits = q.Bytes.N == f.Bytes
		case f.Bytes >= 0 && q.Rounded.Known:
			fits = q.Rounded.N-f.Bytes >= 0 && q.Rounded.N-f.Bytes < 256
		case f.Bytes >= 0 && q.Size.Known:
			fits = f.Bytes >= q.Size.Lo && f.Bytes <= q.Size.Hi
		case f.Bytes < 0 && f.Text != "":
			fits = q.Size.Text == f.Text
		case f.Bytes < 0 && f.Text == "": // the line is missing; the temporaries tell
			fits = f.Stats.Temp != "" && q.Size.Text == f.Stats.Temp
		}
		if fits {
			claimed[i] = true
			return d
		}
	}
	return nil
}

func sizeText(s string) bfclog.Size {
	x, _ := bfclog.ParseSize(s)
	return x
}

func xlaFailure(x *xlalog.Failure, d *bfclog.Dump, card *driverlog.Report) *reading.Reading {
	r := &reading.Reading{Kind: "xla-oom", Line: x.Line, Name: "XLA"}
	if d == nil {
		d = &bfclog.Dump{Line: x.Line, Allocator: x.Allocator}
		d.Request.Size = sizeText(x.Text)
		if x.Bytes >= 0 {
			d.Request.Bytes = bfclog.ExactSize(x.Bytes)
		}
	}
	pool := xlaPool(x, d, card)
	a := analysis.FromDump(d)
	f := &r.Facts
	for _, v := range a.Values() {
		switch v.Name {
		case "kind", "verdict", "secondary", "findings", "likely_cause", "format_variant", "truncated":
		default:
			f.Set(v.Name, fromValue(v))
		}
	}
	f.Text("format_variant", xlaVariant(x, d))
	if x.Bytes >= 0 {
		f.Int("requested_bytes", x.Bytes)
	}
	if v, ok := f.Get("requested_text"); x.Text != "" && (!ok || v.Kind == reading.NullKind) {
		f.Text("requested_text", x.Text)
	}
	f.Text("executable", x.Program)
	f.IntIf("device_ordinal", x.Device, x.Device >= 0)
	f.Int("repeated", int64(x.Count))
	xlaStats(f, x)
	xlaBuffers(f, x)
	xlaBar(f, a.Bar)
	rematFacts(f, x.Remat)
	cut := xlaCut(x) || a.Truncated
	f.Bool("truncated", cut)
	xlaJudge(r, x, a, pool)
	return r
}

// fromValue takes over a value of the allocator's own reading.
func fromValue(v analysis.Value) reading.Value {
	switch v.Type {
	case analysis.IntValue:
		return reading.Int(v.Int)
	case analysis.FloatValue:
		return reading.Float(v.Float)
	case analysis.TextValue:
		return reading.Text(v.Text)
	case analysis.BoolValue:
		return reading.Bool(v.Bool)
	case analysis.IntsValue:
		var f reading.Facts
		f.Ints("", v.Ints)
		return f[0].Value
	case analysis.TextsValue:
		var f reading.Facts
		f.Texts("", v.Texts)
		return f[0].Value
	default:
		return reading.Null()
	}
}

// rematFacts tell how far the compiler could make the program smaller by
// computing values again.
func rematFacts(f *reading.Facts, m *xlalog.Remat) {
	if m == nil {
		m = &xlalog.Remat{TargetBytes: -1, ReducedBytes: -1, Began: -1}
	}
	texts(f, "remat_target_text", m.Target, "remat_reduced_to_text", m.Reduced, "remat_originally_text", m.Original)
	f.IntIf("remat_target_bytes", m.TargetBytes, m.TargetBytes >= 0)
	f.IntIf("remat_reduced_to_bytes", m.ReducedBytes, m.ReducedBytes >= 0)
	f.IntIf("remat_originally_bytes", m.Began, m.Began >= 0)
}

// xlaRemat is the compiler's warning alone.
func xlaRemat(m *xlalog.Remat) *reading.Reading {
	r := &reading.Reading{Kind: "xla-oom", Line: m.Line, Name: "XLA's compiler", Verdict: string(analysis.UndeterminedNoState)}
	f := &r.Facts
	f.Text("format_variant", "warning of the compiler alone")
	f.Null("requested_bytes")
	rematFacts(f, m)
	f.Bool("truncated", false)
	r.Row("aimed at", bfclog.Spaced(m.Target))
	r.Row("came to", bfclog.Spaced(m.Reduced))
	r.Why = fmt.Sprintf("A warning of the compiler: it tried to fit the program into %s by computing values again, and came to %s. Whether the program failed is not in the text; it most likely will.",
		bfclog.Spaced(m.Target), bfclog.Spaced(m.Reduced))
	r.Next = []string{"Begin with a smaller batch or sequence, 16-bit types, or more devices; jax.checkpoint says which values to compute again."}
	return r
}

func xlaVariant(x *xlalog.Failure, d *bfclog.Dump) string {
	parts := []string{"XLA"}
	switch {
	case x.Platform:
		parts = append(parts, "the driver's refusal with text and bytes")
	case x.Payload:
		parts = append(parts, "bracketed payload of 2025")
	case x.Bytes < 0 && x.Text == "":
		parts = append(parts, "the request's line is missing")
	}
	if d.HasBar && !d.Begun() {
		parts = append(parts, "short BFC lines without a dump")
	}
	if x.HasStats {
		parts = append(parts, "buffer assignment statistics")
	}
	if x.HasPeak {
		parts = append(parts, "peak buffers")
	}
	return strings.Join(parts, ", ")
}

func xlaStats(f *reading.Facts, x *xlalog.Failure) {
	s := &x.Stats
	f.Text("parameter_text", s.Parameter)
	f.Text("constant_text", s.Constant)
	f.Text("live_out_text", s.LiveOut)
	f.Text("temp_text", s.Temp)
	temp, known := int64(0), false
	if s.Temp != "" && x.Bytes >= 0 && bfclog.Human(x.Bytes) == s.Temp {
		temp, known = x.Bytes, true // the request is the whole block of temporaries
	} else if t := sizeText(s.Temp); t.Exact() {
		temp, known = t.N, true
	}
	f.IntIf("temp_bytes", temp, known)
	f.Text("total_text", s.Total)
	f.Text("temp_fragmentation_text", s.TempFragmentation)
	f.FloatIf("temp_fragmentation_percent", s.TempFragmentationShare, s.TempFragmentationShare >= 0)
	f.Text("total_fragmentation_text", s.TotalFragmentation)
	f.FloatIf("total_fragmentation_percent", s.TotalFragmentationShare, s.TotalFragmentationShare >= 0)
}

// bufferBytes is exact where the shape explains the printed size.
func bufferBytes(b *xlalog.Buffer) (int64, bool) {
	if sh, ok := xlalog.ParseShape(b.Shape); ok {
		if n, ok := sh.Bytes(); ok && (b.Size == "" || bfclog.Human(n) == b.Size) {
			return n, true
		}
	}
	t := sizeText(b.Size)
	return t.N, t.Exact()
}

func xlaBuffers(f *reading.Facts, x *xlalog.Failure) {
	list := reading.List()
	var biggest bfclog.Size
	source := int64(-1)
	file, op := "", ""
	for i := range x.Buffers {
		b := &x.Buffers[i]
		var o reading.Facts
		o.Int("index", b.Index)
		o.Text("size_text", b.Size)
		n, known := bufferBytes(b)
		o.IntIf("size_bytes", n, known)
		o.Text("shape", b.Shape)
		kind := "temp_or_output"
		if b.Parameter {
			kind = "parameter"
		}
		o.Text("kind", kind)
		o.Text("label", b.Label)
		list.List = append(list.List, reading.Object(o))
		if t := sizeText(b.Size); t.Known && t.N > biggest.N {
			biggest = t
		}
		if source < 0 && b.Row >= 0 {
			source, file = b.Row, b.Source
		}
		if op == "" {
			op = b.OpName
		}
	}
	if !x.HasPeak {
		list = reading.Null()
	}
	f.Set("peak_buffers", list)
	f.Text("biggest_peak_buffer_text", biggest.Text)
	f.Text("source_file", file)
	f.IntIf("source_line", source, source >= 0)
	f.Text("op_name", op)
}

func xlaBar(f *reading.Facts, bar string) {
	free, longest := analysis.BarCells(bar)
	whole := len(bar) == 100
	f.IntIf("free_cells_in_bar", int64(free), whole)
	f.IntIf("longest_free_run_in_bar_percent", int64(longest), whole)
}

// maxPeak is how many of the largest buffers are listed at most.
const maxPeak = 15

// xlaCut: the report of the buffers breaks off. A short list is whole when it
// adds up to the total.
func xlaCut(x *xlalog.Failure) bool {
	if !x.HasStats {
		return false
	}
	if x.Stats.Total == "" || !x.HasPeak || len(x.Buffers) == 0 {
		return true
	}
	var sum float64
	for i := range x.Buffers {
		b := &x.Buffers[i]
		if b.Size == "" || b.Shape == "" && b.OpName == "" && b.Label == "" || !b.Closed {
			return true
		}
		sum += float64(sizeText(b.Size).N)
	}
	return len(x.Buffers) < maxPeak && sum < 0.98*float64(sizeText(x.Stats.Total).N)
}

// The most memory that one accelerator of a kind sold in numbers has, and the
// most that any program can have on it beside what the system keeps. A larger
// request is refused whoever else is there. Bytes.
const (
	largestUsual  = int64(144) << 30
	largestDevice = int64(192) << 30
)

func xlaJudge(r *reading.Reading, x *xlalog.Failure, a *analysis.Reading, pool *driverlog.Pool) {
	r.Verdict = string(a.Verdict)
	total := sizeText(x.Stats.Total)
	request := a.Requested
	if !a.InUse.Known && !a.Pool.Known && a.Verdict.Undetermined() && request.Known &&
		(request.N > largestUsual || total.Known && total.Lo > largestDevice) {
		r.Verdict = string(analysis.RequestExceedsDevice)
		r.Open = append(r.Open, fmt.Sprintf("The size of the device is not in the text. That it is less than what was asked for is concluded from the sizes of devices: few have more than %s, none that is common has more than %s.",
			event.FormatBytes(largestUsual), event.FormatBytes(largestDevice)))
	}
	if len(a.Findings) > 0 {
		r.Secondary = a.Findings[0]
	}
	r.Cause = a.LikelyCause
	r.Why = xlaWhy(r, x, a) + jaxWhy(a, pool)
	if xlaCut(x) {
		r.Open = append(r.Open, "The list of buffers is cut.")
	}
	r.Open = append(r.Open, a.Assumed...)
	if !a.Pool.Known && !a.Limit.Known {
		r.Open = append(r.Open, "The size of the allocator's pool is not in the text.")
	}
	r.Next = append(xlaNext(r, x), jaxNext(r, a, pool)...)
	if a.Requested.Known {
		r.Row("asked for", event.FormatBytes(a.Requested.N))
	}
	if a.Allocator != "" {
		r.Row("allocator", a.Allocator)
	}
	if a.Limit.Known {
		r.Row("pool's limit", event.FormatBytes(a.Limit.N))
	}
	for _, p := range []struct{ label, text string }{
		{"program in all", x.Stats.Total},
		{"parameters", x.Stats.Parameter},
		{"results", x.Stats.LiveOut},
		{"temporaries", x.Stats.Temp},
		{"lost to packing", x.Stats.TotalFragmentation},
	} {
		if p.text != "" {
			r.Row(p.label, bfclog.Spaced(p.text))
		}
	}
	barRow(r, a)
	for i := range min(len(x.Buffers), mostBuffers) {
		b := &x.Buffers[i]
		r.Row(fmt.Sprintf("buffer %d", b.Index), strings.TrimSpace(bfclog.Spaced(b.Size)+" "+b.Shape))
	}
	if n := len(x.Buffers) - mostBuffers; n > 0 {
		r.Row("more buffers", fmt.Sprintf("%d smaller ones", n))
	}
}

// mostBuffers is how many of the largest buffers, or allocations, a table names.
const mostBuffers = 3

// barRow tells what the usage bar shows, where nothing better tells the state.
func barRow(r *reading.Reading, a *analysis.Reading) {
	if len(a.Bar) != 100 || a.InUse.Known {
		return
	}
	free, longest := analysis.BarCells(a.Bar)
	r.Row("usage bar", fmt.Sprintf("%d of 100 cells free, at most %d side by side", free, longest))
}

func xlaWhy(r *reading.Reading, x *xlalog.Failure, a *analysis.Reading) string {
	var s string
	switch analysis.Verdict(r.Verdict) {
	case analysis.FullOrFragmentedByBar:
		s = "Only the usage bar tells the state of the pool: it is either full or too broken up for this request."
	case analysis.Full:
		s = "The pool has too little left for this request in any arrangement."
	case analysis.Fragmented:
		s = "Enough bytes are free in the pool, but not in one piece."
	case analysis.RequestExceedsDevice:
		s = "The program needs more than a device has."
	case analysis.OtherProcess:
		s = "The pool was allowed to grow, and the driver had nothing to give."
	case analysis.LimitTooLow, analysis.HostPinnedLimit, analysis.LeakManyEqualChunks, analysis.NotMemory, analysis.Retryable:
		s = a.Why()
	default:
		s = "The text does not tell the state of the memory."
	}
	if x.Stats.Temp != "" && a.Requested.Known && bfclog.Human(a.Requested.N) == x.Stats.Temp {
		s += " The request is the program's whole block of temporaries, planned when it was compiled, not one tensor."
	} else if x.Stats.LiveOut != "" && a.Requested.Known && bfclog.Human(a.Requested.N) == x.Stats.LiveOut {
		s += " The request is as large as the program's results: what it returns, not what it works with."
	}
	return s
}

func xlaNext(r *reading.Reading, x *xlalog.Failure) []string {
	var out []string
	if len(x.Buffers) > 0 {
		out = append(out, "Begin with the largest buffers: a smaller batch or sequence, computation in pieces, recomputation, 16-bit types.")
	}
	switch analysis.Verdict(r.Verdict) {
	case analysis.RequestExceedsDevice:
		out = append(out, "No allocator setting closes the gap; spread the program over several devices, or make it smaller.")
	default:
	}
	return out
}

// unitText reads a TPU's sizes, whose K, M and G are binary.
func unitText(s string) (float64, bool) {
	t := strings.TrimSuffix(strings.TrimSuffix(s, "B"), "i")
	if t == "" {
		return 0, false
	}
	unit := 1.0
	switch t[len(t)-1] {
	case 'K':
		unit = 1 << 10
	case 'M':
		unit = 1 << 20
	case 'G':
		unit = 1 << 30
	case 'T':
		unit = 1 << 40
	case 'P':
		unit = 1 << 50
	case 'E':
		unit = 1 << 60
	}
	if unit > 1 {
		t = t[:len(t)-1]
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e12 {
		return 0, false
	}
	return f * unit, true
}

// unitAs prints bytes the way the text does: "10.74G".
func unitAs(b float64) string {
	switch {
	case b >= 1<<30:
		return fmt.Sprintf("%.2fG", b/(1<<30))
	case b >= 1<<20:
		return fmt.Sprintf("%.2fM", b/(1<<20))
	case b >= 1<<10:
		return fmt.Sprintf("%.1fK", b/(1<<10))
	default:
		return fmt.Sprintf("%.0fB", b)
	}
}
