package draw

import (
	"slices"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// Image is a picture of W x H pixels, four bytes each: red, green, blue and
// alpha, opaque wherever something was drawn.
type Image struct {
	Pix    []byte
	W, H   int
	Stride int // bytes from one row to the next
}

// NewImage makes a picture of that size.
func NewImage(w, h int) *Image {
	return &Image{Pix: make([]byte, 4*w*h), W: w, H: h, Stride: 4 * w}
}

// Rect is a piece of a picture in pixels.
type Rect struct{ X, Y, W, H int }

// LaneKind says what a lane shows.
type LaneKind uint8

// The kinds of lane.
const (
	MemoryLane   LaneKind = iota // a pool's bytes, stacked by category, in each its blocks by age
	AddressLane                  // a pool's addresses by time
	OpLane                       // a device's ops, a row for each stream
	TransferLane                 // copies, a row for each direction
	InputLane                    // the input pipeline: stalls, queues, stages
	MinimapLane                  // the whole run, with the view's window marked
	SampleLane                   // sampled numbers, a row for each: what a card's driver tells
)

// Lane is one strip of a view.
type Lane struct {
	Kind   LaneKind
	Pool   int            // MemoryLane, AddressLane, MinimapLane: index into Pools
	Device event.DeviceID // OpLane
	Y, H   int            // pixels
	// Top is the value at the lane's upper edge, in bytes; 0 means that the
	// lane chooses: see Scale. MemoryLane only.
	Top int64
	// Low and High bound the part of the compact layout that an AddressLane
	// shows, in bytes; both 0 mean all of it.
	Low, High int64
	// Idle0 and Idle1 bound a time that a MinimapLane leaves out but for a mark,
	// such as a long wait for memory; both 0: none. See IdleShare.
	Idle0, Idle1 int64
}

// View is what a frame shows.
type View struct {
	T0, T1 int64 // nanoseconds, T0 < T1
	W, H   int   // pixels of the picture
	DPR    int   // device pixels for each CSS pixel, 1 or more: widths of lines; 0 means 1
	Theme  *Theme
	Lanes  []Lane
	// Base is the run to compare with, drawn as a ghost line; nil for none.
	// Its pool is the one that store.Counterpart names.
	Base *store.Timeline
	// Hide has a bit for each event.Category that is not to be drawn.
	Hide uint32
	// Parts is what passes a filter, by pool: memory and address lanes dim the
	// rest. Nil, as a whole or for a pool, dims nothing. Lanes are drawn anew when
	// PartsSeen changes, for a part that is still being built.
	Parts     []*store.Part
	PartsSeen uint64
}

// partOf is what is told apart in a lane; nil for nothing.
func (v *View) partOf(l *Lane) *store.Part {
	if l.Kind != MemoryLane && l.Kind != AddressLane || l.Pool >= len(v.Parts) {
		return nil
	}
	return v.Parts[l.Pool]
}

// Window is the view's time, cut into its pixel columns.
func (v *View) Window() store.Window { return store.Window{T0: v.T0, T1: v.T1, W: v.W} }

func (v *View) dpr() int { return max(v.DPR, 1) }

// end is the column after a timeline's last event, before which what is in use
// is drawn. A single moment fills the width.
func (v *View) end(tl *store.Timeline) int {
	first, last := tl.Span()
	if last == first {
		return max(v.W, 1)
	}
	return v.x(last) + 1
}

// width is how many columns a while takes, wherever the view is.
func (v *View) width(d int64) int {
	return int(float64(d) * float64(v.W) / float64(max(v.T1-v.T0, 1)))
}

// x is the column of a time, which may lie outside.
func (v *View) x(t int64) int {
	// Limited first: open spans end at the end of all time.
	d := v.T1 - v.T0
	t = min(max(t, v.T0-d), v.T1+d)
	if step := v.step(); step > 0 {
		if t -= v.T0; t < 0 {
			return -int((step - 1 - t) / step)
		}
		return int(t / step)
	}
	f := float64(t-v.T0) * float64(v.W) / float64(d)
	if f < 0 {
		return int(f) - 1
	}
	return int(f)
}

// Align moves the window by less than a pixel, so that every column is as long
// as any other and begins at a whole number of columns from the beginning of
// time. Aligned views that overlap have columns in common, which need not be
// drawn again. Views of less than a nanosecond a column are left alone.
func (v *View) Align() {
	w := int64(v.W)
	if v.W <= 0 || v.T1-v.T0 < w {
		return
	}
	step := (v.T1 - v.T0 + w - 1) / w
	at := v.T0 + step/2
	at -= ((at % step) + step) % step
	v.T0, v.T1 = at, at+step*w
}

// step is the length of a column of an aligned view, else 0.
func (v *View) step() int64 {
	w := int64(v.W)
	if step := (v.T1 - v.T0) / w; step*w == v.T1-v.T0 {
		return step
	}
	return 0
}

// phase is the place of column 0 in patterns that repeat every 4 or 10 pixels
// of CSS, so that a pattern moves with what it lies on.
func (v *View) phase() int {
	step, m := v.step(), int64(20*v.dpr())
	if step == 0 {
		return 0
	}
	return int((v.T0/step%m + m) % m)
}

// part is the window of the columns [x0,x1), which may lie outside.
func (v *View) part(x0, x1 int) store.Window {
	if step := v.step(); step > 0 {
		return store.Window{T0: v.T0 + int64(x0)*step, T1: v.T0 + int64(x1)*step, W: x1 - x0}
	}
	return v.Window()
}

// joined is part with one column more on the left, where there is one: a line
// begins at the height at which it ended there.
func (v *View) joined(x0, x1 int) (w store.Window, left int) {
	if v.step() > 0 {
		x0--
	}
	return v.part(x0, x1), x0
}

// TimeAt is the time at the left edge of a column.
func (v *View) TimeAt(x int) int64 { return v.Window().Edge(x) }

// Heights of rows in CSS pixels.
const (
	opRow       = 18
	transferRow = 20
	inputRow    = 16
	sampleRow   = 34
)

// Layout is the lanes for a timeline, stacked into w x h pixels with gap
// pixels between them: for each accelerator its memory and address lanes and
// its ops, then samples, transfers and input. Lanes with nothing to show are left out.
// Where there is no accelerator the host's memory is shown. dpr scales the
// heights of rows.
func Layout(tl *store.Timeline, h, gap, dpr int) []Lane {
	dpr = max(dpr, 1)
	var lanes []Lane
	for _, p := range shownPools(tl) {
		lanes = append(lanes, Lane{Kind: MemoryLane, Pool: p}, Lane{Kind: AddressLane, Pool: p})
	}
	for _, d := range opDevices(tl) {
		lanes = append(lanes, Lane{Kind: OpLane, Device: d})
	}
	lanes = append(lanes, Lane{Kind: SampleLane}, Lane{Kind: TransferLane}, Lane{Kind: InputLane})
	fixed, tall, n := 0, 0, 0
	for _, l := range lanes {
		switch l.Kind {
		case MemoryLane, AddressLane:
			tall++
		default:
			rows := len(appendRows(nil, tl, &l))
			if rows == 0 {
				continue
			}
			l.H = rows * rowHeight(l.Kind) * dpr
			fixed += l.H + gap
		}
		lanes[n] = l
		n++
	}
	lanes = lanes[:n]
	rest := max(h-fixed-tall*gap, tall*40*dpr)
	y := 0
	for i := range lanes {
		l := &lanes[i]
		switch l.Kind {
		case MemoryLane:
			// A little more than the address map: it is what is read first.
			l.H = rest / tall * 11 / 10
		case AddressLane:
			l.H = rest/tall*2 - rest/tall*11/10
		}
		l.Y = y
		y += l.H + gap
	}
	return lanes
}

func rowHeight(k LaneKind) int {
	switch k {
	case OpLane:
		return opRow
	case TransferLane:
		return transferRow
	case SampleLane:
		return sampleRow
	}
	return inputRow
}

// shownPools are the pools with blocks on accelerators, else all with blocks.
func shownPools(tl *store.Timeline) []int {
	var accelerators, all []int
	for i, p := range tl.Pools() {
		if p.Allocs() == 0 && p.LayoutSize() == 0 {
			continue
		}
		all = append(all, i)
		if k := tl.Device(p.Device).Kind; k != "cpu" && k != "" {
			accelerators = append(accelerators, i)
		}
	}
	if accelerators != nil {
		all = accelerators
	}
	return arenasBehind(tl, all)
}

// arenasBehind puts the arenas of planned execution behind the pool of their
// device that they lie in.
func arenasBehind(tl *store.Timeline, list []int) []int {
	out := make([]int, 0, len(list))
	for _, i := range list {
		p := tl.Pools()[i]
		if p.Planned() {
			continue
		}
		out = append(out, i)
		for _, k := range list {
			a := tl.Pools()[k]
			if within, _ := a.Facts.Get("within"); a.Planned() && a.Device == p.Device && within == p.Name {
				out = append(out, k)
			}
		}
	}
	for _, i := range list { // of a pool that is not shown, or that nobody named
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

func opDevices(tl *store.Timeline) []event.DeviceID {
	var out []event.DeviceID
	seen := map[event.DeviceID]bool{}
	for _, k := range tl.Tracks() {
		if k.Kind == store.OpTrack && !seen[k.Device] {
			seen[k.Device] = true
			out = append(out, k.Device)
		}
	}
	return out
}
