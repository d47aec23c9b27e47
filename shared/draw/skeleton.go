package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// Theme is the colours of a picture. The page's styles use the same values:
// see Tokens.
type Theme struct {
	Name       string
	Background Color // of the page
	Lane       Color // of a lane
	Grid       Color // hairlines
	Line       Color // the outline of the memory lane
	Reserved   Color // line of reserved bytes; its area is paler
	Limit      Color // limit line
	Ghost      Color // base run
	Hole       Color // free addresses of a region
	Outside    Color // addresses of no region
	Warning    Color // stalls and out of memory, and nothing else
	Peak       Color
	Category   [event.NumCategories]Color
	Phase      [store.NumClasses]Color // ops: forward, backward, update, input, copy
	Cause      [store.NumClasses]Color // transfers
	Stage      Color                   // input pipeline at work
	Queue      Color                   // buffered elements
}

// Light is the theme for bright surroundings.
func Light() *Theme { return &Theme{Name: "light"} }

// Dark is the theme for dim surroundings.
func Dark() *Theme { return &Theme{Name: "dark"} }

// Token is a colour by the name under which styles know it.
type Token struct {
	Name  string // "category-parameter", "warning"
	Color Color
}

// Hex is the colour as #rrggbb.
func (c Color) Hex() string { return "" }

// Tokens lists the theme's colours by name.
func (t *Theme) Tokens() []Token { return nil }

// Renderer draws frames. It keeps buffers and remembers what each lane last
// showed; use one for each picture. The zero value is ready.
type Renderer struct{}

// Frame draws the lanes of v that changed since the last Frame into the same
// image, and returns the pieces that it touched, valid until the next call. A
// frame of another size, or after Invalidate, is drawn whole.
func (r *Renderer) Frame(img *Image, tl *store.Timeline, v *View) []Rect { return nil }

// Invalidate makes the next Frame draw everything.
func (r *Renderer) Invalidate() {}

// Layout is the lanes for a timeline, stacked into w x h pixels with gap
// pixels between them: for each accelerator its memory and address lanes, then
// ops, transfers and input. Lanes with nothing to show are left out.
func Layout(tl *store.Timeline, w, h, gap int) []Lane { return nil }

// Scale is the number of bytes at the upper edge of a memory lane when its Top
// is 0: the limit, the reserved bytes or the peak, whichever tells more.
func Scale(tl *store.Timeline, v *View, l *Lane) int64 { return 0 }

// Row is one row of a lane, for its label.
type Row struct {
	Y, H  int
	Track int // index into Tracks, or -1
	Title string
}

// Rows are the rows of an op, transfer or input lane.
func Rows(tl *store.Timeline, l *Lane) []Row { return nil }

// HitKind says what lies under a point.
type HitKind uint8

// What can lie under a point.
const (
	NoHit     HitKind = iota
	MemoryHit         // the pool's state: Category is the band under the point
	AllocHit          // an allocation: Pool, Index
	HoleHit           // free addresses: Pool, Size
	SpanHit           // a span: Track, Index
	OOMHit            // a failed request: Index into OOMs
	BandHit           // too many to tell apart: Track or Pool, Count
)

// Hit is what lies under a point.
type Hit struct {
	Kind     HitKind
	Lane     int // index into View.Lanes, -1 outside
	Time     int64
	Pool     int
	Track    int
	Index    int
	Count    int
	Category event.Category
	Size     int64 // bytes: of the band, block or hole
	Value    int64 // MemoryLane: bytes at this height. AddressLane: place in the layout
}

// HitTest says what lies under pixel (x, y).
func HitTest(tl *store.Timeline, v *View, x, y int) Hit { return Hit{Lane: -1} }

// Tick is a mark on an axis.
type Tick struct {
	At    int64  // nanoseconds or bytes
	Pixel int    // from the axis' start
	Label string // "1.2 s", "4 GiB"
}

// TimeTicks are round times in [t0,t1) on an axis of w pixels, about one for
// each every pixels.
func TimeTicks(t0, t1 int64, w, every int) []Tick { return nil }

// ByteTicks are round sizes from 0 to top on an axis of h pixels, counted from
// its lower end, about one for each every pixels.
func ByteTicks(top int64, h, every int) []Tick { return nil }

// FormatTime writes a time or duration in nanoseconds for people.
func FormatTime(ns int64) string { return "" }
