package explain

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"tideline/native/picture"
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/draw"
	"tideline/shared/export"
	"tideline/shared/ingest"
	"tideline/shared/redact"
	"tideline/shared/store"
)

// class is the style of a category's colour.
func class(c event.Category) string { return "c" + strconv.Itoa(int(c)) }

// bar is the allocator's own picture of its pool, a rect for each run of cells.
type bar struct {
	Parts      []part
	HoleX      int
	HoleW      int
	Label      string
	LabelX     int
	LabelEnd   bool
	LargestRow bool
}

// units is the width of every bar.
const units = 1000

func drawBar(f *failure, cells []rune, from, to int, exact bool) *bar {
	b := &bar{}
	n := len(cells)
	for i := 0; i < n; {
		j := i
		for j < n && cells[j] == cells[i] {
			j++
		}
		p := part{X: i * units / n, W: (j - i) * units / n}
		switch cells[i] {
		case usedCell:
			p.Class, p.Name = "used", "in use"
		case tailCell:
			p.Class, p.Name = "tail", "unused tails of chunks"
		default:
			p.Class, p.Name = "free", "free"
		}
		b.Parts = append(b.Parts, p)
		i = j
	}
	if to > from {
		b.hole(from*units/n, (to-from)*units/n, "longest free run of the bar, an estimate")
		if exact {
			b.Label = largestHole(f)
		}
	}
	return b
}

func largestHole(f *failure) string {
	if f.LargestFree.Known {
		return "largest hole, " + event.FormatBytes(f.LargestFree.N)
	}
	return "largest hole"
}

func (b *bar) hole(x, w int, label string) {
	b.HoleX, b.HoleW, b.Label, b.LargestRow = x, max(w, 2), label, true
	b.LabelX, b.LabelEnd = x, x > units/2
	if b.LabelEnd {
		b.LabelX = x + b.HoleW
	}
}

// chunkPicture is every chunk of every region at its place, a row a region.
type chunkPicture struct {
	Rows    []regionRow
	Height  int
	Left    int // regions that are not shown
	Caption string
}

type regionRow struct {
	Y     int
	Label string
	Width int
	Bar   bar
}

const (
	mapRows   = 48
	rowHeight = 26
)

// drawMap lays out the chunks. Regions have one scale, so that a small one looks
// small; chunks that fall into one unit are drawn together.
func drawMap(f *failure) *chunkPicture {
	regions := slices.Clone([]event.Region(f.Map))
	m := &chunkPicture{}
	if len(regions) > mapRows {
		slices.SortStableFunc(regions, func(a, b event.Region) int { return cmp.Compare(b.Size, a.Size) })
		m.Left = len(regions) - mapRows
		regions = regions[:mapRows]
		slices.SortFunc(regions, func(a, b event.Region) int { return cmp.Compare(a.Address, b.Address) })
	}
	widest, chunks := int64(1), 0
	for _, r := range regions {
		widest = max(widest, r.Size)
	}
	for i, r := range regions {
		row := regionRow{Y: i * rowHeight, Label: event.FormatBytes(r.Size), Width: max(2, int(float64(r.Size)/float64(widest)*units))}
		for _, c := range r.Chunks {
			chunks++
			row.chunk(f, &r, &c)
		}
		m.Rows = append(m.Rows, row)
	}
	m.Height = len(regions)*rowHeight + 4
	m.Caption = fmt.Sprintf("%s in %s, lowest address first; one scale for all.", plural(int64(chunks), "chunk"), plural(int64(len(f.Map)), "region"))
	return m
}

func (row *regionRow) chunk(f *failure, r *event.Region, c *event.Chunk) {
	at := func(a uint64) int { return int(float64(a-r.Address) / float64(max(r.Size, 1)) * float64(row.Width)) }
	x, end := at(c.Address), at(c.Address+uint64(c.Size))
	p := part{X: x, W: end - x, Class: "free", Name: "free", Bytes: event.FormatBytes(c.Size)}
	if c.InUse {
		p.Class, p.Name = "used", "in use"
	}
	if !c.InUse && c.Address == f.LargestFreeAt && c.Size == f.LargestFree.N {
		row.Bar.hole(x, end-x, largestHole(f))
	}
	if c.InUse && c.Requested < c.Size && c.Requested > 0 {
		if mid := at(c.Address + uint64(c.Requested)); mid > x && mid < end {
			row.add(part{X: x, W: mid - x, Class: "used", Name: "in use", Bytes: event.FormatBytes(c.Requested)})
			p = part{X: mid, W: end - mid, Class: "tail", Name: "unused tail", Bytes: event.FormatBytes(c.Size - c.Requested)}
		}
	}
	row.add(p)
}

// add joins what lies within one unit with its neighbour.
func (row *regionRow) add(p part) {
	if p.W < 1 {
		if p.Class == "free" {
			return
		}
		p.W = 1
	}
	if n := len(row.Bar.Parts); n > 0 {
		if l := &row.Bar.Parts[n-1]; l.Class == p.Class && p.W <= 1 && l.X+l.W >= p.X {
			l.W = max(l.W, p.X+p.W-l.X)
			l.Bytes = "" // of several
			return
		}
	}
	row.Bar.Parts = append(row.Bar.Parts, p)
}

// heldTables are who holds the memory at a failure.
func (f *failure) heldTables() []heldTable {
	var out []heldTable
	if r := f.recorded; r != nil {
		kinds := heldOf("Held at that moment, by category", r.ByKind, 10)
		for i := range kinds.Rows {
			if c, ok := event.ParseCategory(kinds.Rows[i].Name); ok {
				kinds.Rows[i].Class = class(c)
			}
		}
		out = append(out, kinds, heldOf("By op", r.ByOp, 12))
		if r.Ledger != nil {
			out = append(out, ledgerTable(r.Ledger, ""))
		}
		return out
	}
	if len(f.Holders) > 0 {
		out = append(out, heldOf("Held at that moment, by op", f.Holders, 12))
	}
	if len(f.Usage) > 0 {
		t := heldTable{Title: "Held, as the error reports it"}
		for i, u := range f.Usage {
			if i == 12 {
				break
			}
			t.Rows = append(t.Rows, heldRow{Name: u.Node, Bytes: spaced(u.Size.Text)})
		}
		out = append(out, t)
	}
	if share, ok := f.DominantShare(); ok && share >= 0.25 {
		out = append(out, heldTable{Title: "The commonest size", Rows: []heldRow{{
			Name: fmt.Sprintf("chunks of %s, %.1f %% of what is in use", event.FormatBytes(f.DominantSize.N), 100*share), Bytes: event.FormatBytes(f.DominantBytes().N),
			Blocks: strconv.FormatInt(f.DominantCount.N, 10), Width: int(100 * share),
		}}})
	}
	return out
}

func heldOf(title string, list []analysis.Held, most int) heldTable {
	t := heldTable{Title: title}
	for i, h := range list {
		if i == most {
			break
		}
		t.Rows = append(t.Rows, heldRow{
			Name: h.Name, Bytes: event.FormatBytes(h.Bytes), Blocks: strconv.FormatInt(h.Blocks, 10),
			Width: int(100 * h.Bytes / max(list[0].Bytes, 1)),
		})
	}
	return t
}

// runPage sums a run up.
func (rep *report) runPage() *runPage {
	s := rep.run
	end, tone := "it was cut off before its end", "warn"
	if s.Ended {
		end, tone = "ended: "+s.End.String(), "ok"
		if s.End == event.EndOutOfMemory || s.End == event.EndFailed {
			tone = "bad"
		}
	}
	p := &runPage{Tone: tone, Summary: fmt.Sprintf("%s in %s, %s; %s", plural(s.Steps, "step"), duration(s.Nanos), plural(s.Events, "event"), end)}
	if s.Ended && s.End != event.EndOutOfMemory && s.End != event.EndDone {
		p.Why = s.EndText
	}
	for i := range s.Allocators {
		if a := &s.Allocators[i]; a.Allocs > 0 || a.PeakReserved > 0 {
			p.Allocators = append(p.Allocators, allocatorLine(a))
		}
	}
	for _, t := range s.Transfers {
		p.Lines = append(p.Lines, fmt.Sprintf("Transfers, %s: %d, %s", t.Cause, t.Count, event.FormatBytes(t.Bytes)))
	}
	if s.Stalls.Count > 0 {
		p.Lines = append(p.Lines, fmt.Sprintf("Waiting for input: %d×, %s", s.Stalls.Count, duration(s.Stalls.Nanos)))
	}
	if s.Lost > 0 {
		p.Lines = append(p.Lines, fmt.Sprintf("%d events are missing; the figures are those of the rest.", s.Lost))
	}
	if len(rep.failures) == 0 {
		p.Lines = append(p.Lines, "No request failed for lack of memory.")
		if rep.fullest != nil {
			t := ledgerTable(rep.fullest, atPeak)
			p.Card = &t
		}
	}
	return p
}

func allocatorLine(a *analysis.AllocatorSummary) allocatorRow {
	r := allocatorRow{
		Name: a.Name, Device: a.Device, InUse: event.FormatBytes(a.PeakInUse), Reserved: event.FormatBytes(a.PeakReserved),
		At: duration(a.PeakAt), Limit: "none",
	}
	if a.Reported {
		r.At = "as the log tells"
	}
	if a.Within != "" {
		r.Note = "within " + a.Within + ", whose figures contain it"
	}
	whole := max(a.PeakInUse, a.PeakReserved, 1)
	if a.Limit.Known {
		r.Limit = event.FormatBytes(a.Limit.N)
	}
	x := 0
	for c, n := range a.PeakByCategory {
		if w := int(float64(n) / float64(whole) * units); w > 0 {
			r.Parts = append(r.Parts, part{X: x, W: w, Class: class(event.Category(c)), Name: event.Category(c).String(), Bytes: event.FormatBytes(n)})
			x += w
		}
	}
	return r
}

// pictured is the timeline as the page of the agent draws it, for both themes.
type pictured struct {
	Light, Dark template.URL
	W, H        int
	t0, t1      int64
	Labels      []laneLabel
	From, To    string
	Note        string
	Legend      []legend
}

type laneLabel struct {
	Y    int
	Text string
}

type legend struct{ Class, Name string }

// peakTable is what an allocator held when it was fullest.
type peakTable struct {
	Title  string
	Ops    heldTable
	Blocks []blockRow
	More   int
	// Columns that no row fills are left out.
	HasTensor, HasOp, HasCategory, HasStep bool
}

type blockRow struct {
	Address, Size, Requested, Tensor, Op, Category, Class, Step, Begin string
}

const (
	pictureWidth = 2060 // twice what a page shows, so that print is sharp
	laneHeight   = 190
	peakOps      = 12
	peakBlocks   = 20
	peakPools    = 4
)

// pictures draws the timeline and lists what lived at the peaks.
func (rep *report) pictures(p *page) error {
	t0, t1 := rep.tl.Span()
	if end, waited := rep.untilWait(t0, t1); t1 > t0 {
		x := pictured{W: pictureWidth, H: rep.pictureHeight(), t0: t0, t1: end, From: duration(t0), To: duration(end)}
		if waited > 0 {
			x.Note = "without the last " + duration(waited) + ", in which the request waited in vain"
		}
		var err error
		if x.Light, err = rep.png(draw.Light(), &x); err == nil {
			x.Dark, err = rep.png(draw.Dark(), &x)
		}
		if err != nil {
			return err
		}
		for c := range event.NumCategories {
			for _, pool := range rep.tl.Pools() {
				if pool.Held(event.Category(c)) {
					name := pool.CategoryName(event.Category(c))
					if event.Category(c).Plain() != event.Category(c) {
						name = rep.named(name, redact.Op)
					}
					x.Legend = append(x.Legend, legend{class(event.Category(c)), name})
					break
				}
			}
		}
		p.Pictures = append(p.Pictures, x)
	}
	pools := slices.Clone(rep.tl.Pools())
	slices.SortStableFunc(pools, func(a, b *store.Pool) int { return cmp.Compare(b.HighestInUse(t0, t1+1), a.HighestInUse(t0, t1+1)) })
	for _, pool := range pools {
		if len(p.Peaks) < peakPools && pool.Allocs() > 0 {
			p.Peaks = append(p.Peaks, rep.peak(pool, t0, t1))
		}
	}
	return nil
}

// pictureHeight is that of the picture of the timeline, in pixels.
func (rep *report) pictureHeight() int {
	lanes := len(draw.Layout(rep.tl, 4000, 6, 2))
	return min(max(lanes, 2), 8) * laneHeight
}

// untilWait is where the picture ends. An allocator that cannot grow waits for
// frees before it gives up; where that is most of the run, nothing would be seen
// of the rest.
func (rep *report) untilWait(t0, t1 int64) (end, waited int64) {
	if rep.run == nil || len(rep.run.Failures) == 0 {
		return t1, 0
	}
	f := &rep.run.Failures[len(rep.run.Failures)-1]
	if busy := f.Time - f.Waited; f.Waited > (t1-t0)/2 && busy > t0 {
		return busy + (busy-t0)/50, f.Waited
	}
	return t1, 0
}

func (rep *report) png(theme *draw.Theme, x *pictured) (template.URL, error) {
	o := picture.Options{W: x.W, H: x.H, T0: x.t0, T1: x.t1 + (x.t1-x.t0)/200 + 1, DPR: 2, Theme: theme}
	if x.Labels == nil {
		for _, l := range o.View(rep.tl).Lanes {
			y := l.Y
			if l.Kind == draw.MemoryLane {
				y += 14 // below the line of the limit
			}
			x.Labels = append(x.Labels, laneLabel{y, rep.laneName(&l)})
		}
	}
	var b bytes.Buffer
	if err := picture.Encode(&b, picture.Draw(rep.tl, o)); err != nil {
		return "", fmt.Errorf("draw the timeline: %w", err)
	}
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), nil //nolint:gosec // a picture that was just drawn
}

func (rep *report) laneName(l *draw.Lane) string {
	switch l.Kind {
	case draw.MemoryLane:
		return rep.named(rep.tl.PoolName(l.Pool), redact.Allocator) + ": bytes in use, by category"
	case draw.AddressLane:
		return rep.named(rep.tl.PoolName(l.Pool), redact.Allocator) + ": addresses"
	case draw.OpLane:
		return rep.named(rep.tl.Device(l.Device).Name, redact.Name) + ": ops"
	case draw.TransferLane:
		return "transfers"
	case draw.InputLane:
		return "input pipeline"
	case draw.SampleLane:
		return "samples"
	default:
		return ""
	}
}

// named is a name of the timeline, redacted where that is asked for.
func (rep *report) named(s string, kind redact.Kind) string {
	if rep.red == nil {
		return s
	}
	return rep.red.Name(kind, s)
}

func (rep *report) peak(pool *store.Pool, t0, t1 int64) peakTable {
	peak := pool.Peak(t0, t1+1, peakOps)
	t := peakTable{Title: fmt.Sprintf("%s when it was fullest: %s in %s, at %s", rep.named(pool.Name, redact.Allocator), event.FormatBytes(peak.InUse),
		plural(int64(peak.Count), "block"), duration(peak.Time))}
	largest := int64(1)
	for i, x := range peak.Top {
		if i == 0 {
			largest = max(largest, x.Bytes)
		}
		name := rep.named(rep.tl.Text(x.Op), redact.Op)
		if name == "" {
			name = "(no op)"
		}
		t.Ops.Rows = append(t.Ops.Rows, heldRow{
			Name: name, Bytes: event.FormatBytes(x.Bytes), Blocks: strconv.Itoa(x.Count), Width: int(100 * x.Bytes / largest), Class: class(x.Category),
		})
	}
	t.Ops.Title = "By op or line"
	live := pool.LiveIn(nil, pool.Fullest(peak.Time))
	slices.SortStableFunc(live, func(a, b int32) int { return cmp.Compare(pool.Alloc(int(b)).Size, pool.Alloc(int(a)).Size) })
	if len(live) > peakBlocks {
		t.More, live = len(live)-peakBlocks, live[:peakBlocks]
	}
	for _, i := range live {
		a := pool.Alloc(int(i))
		row := blockRow{
			Address: fmt.Sprintf("%#x", a.Address), Size: event.FormatBytes(a.Size), Requested: event.FormatBytes(a.Requested),
			Category: a.Category.Plain().String(), Class: class(a.Category), Begin: duration(a.Birth), Op: clip(rep.named(rep.tl.Text(a.Op), redact.Op)),
		}
		if a.Step != event.NoStep {
			row.Step = strconv.Itoa(int(a.Step) + 1)
		}
		if tensor := rep.tl.Text(a.Tensor); !export.IsStack(tensor) {
			row.Tensor = clip(rep.named(tensor, redact.Tensor))
		} else if rep.red == nil {
			row.Tensor = clip(tensor)
		}
		t.HasTensor, t.HasOp = t.HasTensor || row.Tensor != "" && row.Tensor != row.Op, t.HasOp || row.Op != ""
		t.HasCategory, t.HasStep = t.HasCategory || a.Category.Plain() != event.Unknown, t.HasStep || row.Step != ""
		t.Blocks = append(t.Blocks, row)
	}
	return t
}

// draw keeps a foreign file's events for the page's pictures.
func (rep *report) draw(d *ingest.Data) {
	strs := new(event.Strings)
	rep.tl = store.New(strs)
	batch := make([]event.Event, 0, 1024)
	d.Emit(strs, event.SinkFunc(func(e *event.Event) {
		if batch = append(batch, *e); len(batch) == cap(batch) {
			rep.tl.Append(batch)
			batch = batch[:0]
		}
	}))
	rep.tl.Append(batch)
}
