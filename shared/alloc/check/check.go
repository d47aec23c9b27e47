// Package check is the judge of allocations. It knows the rules that hold for
// every allocator and nothing of how any of them works: given a run's events
// it verifies that blocks lie inside of regions and never over each other,
// that sizes and addresses are rounded, that frees match what was handed out,
// and that regions come and go whole.
//
// It is meant for tests and for recordings of doubtful origin. It says nothing
// about whether an allocator chose well, only whether what it did is possible.
package check

import (
	"fmt"
	"sort"

	"tideline/protocol/event"
)

// Rules are what an allocator promises beyond what all of them do.
type Rules struct {
	Granule int64 // addresses and block sizes are multiples; 0 means 1
	// SizeGranule is Granule for sizes alone, where it differs; 0 means that it
	// does not.
	SizeGranule int64
	// Page, above 0, says that the driver maps memory by pages of so many
	// bytes: a region may go in part, by whole pages.
	Page  int64
	Limit int64 // most bytes of regions; 0 means none
	// Slack is by how much the driver may lift the pool above Limit by giving
	// more than was asked for.
	Slack int64
}

// BFC are the rules of a BFC allocator with that limit.
func BFC(limit int64) Rules { return Rules{Granule: 256, Limit: limit} }

// Violation is an event that cannot be.
type Violation struct {
	Index int // of the event, from 0
	Event event.Event
	Text  string
}

// Error says what is wrong with which event.
func (v *Violation) Error() string {
	e := &v.Event
	return fmt.Sprintf("event %d (%s, device %d, allocator %d, address %x, %d bytes): %s",
		v.Index, e.Kind, e.Device, e.Allocator, e.Address, e.Size, v.Text)
}

// Judge verifies a stream of events, for any number of devices and allocators.
type Judge struct {
	rules  func(event.DeviceID, event.AllocatorID) Rules
	spaces map[place]*space
	text   *event.Strings
	n      int
	last   int64
	first  *Violation
}

type place struct {
	device    event.DeviceID
	allocator event.AllocatorID
}

// span is a region or a block.
type span struct {
	addr      uint64
	size      int64
	requested int64
}

func (s span) end() uint64 { return s.addr + uint64(s.size) }

// space is what one allocator holds, both lists ascending by address.
type space struct {
	rules         Rules
	regions, live []span
	pool, inUse   int64
	peak          int64
}

// New returns a judge. rules may be nil: then every granule is 1 and nothing
// has a limit. text resolves the chunk maps of out-of-memory events; nil leaves
// them unread.
func New(rules func(event.DeviceID, event.AllocatorID) Rules, text *event.Strings) *Judge {
	if rules == nil {
		rules = func(event.DeviceID, event.AllocatorID) Rules { return Rules{} }
	}
	return &Judge{rules: rules, spaces: map[place]*space{}, text: text}
}

// Emit implements event.Sink. The first violation is kept for Err; what comes
// after it is not looked at.
func (j *Judge) Emit(e *event.Event) {
	if j.first != nil {
		return
	}
	if text := j.judge(e); text != "" {
		j.first = &Violation{j.n, *e, text}
	}
	j.n++
}

// Err is the first violation, or nil.
func (j *Judge) Err() error {
	if j.first == nil {
		return nil
	}
	return j.first
}

// Totals are what an allocator holds by the events so far.
func (j *Judge) Totals(d event.DeviceID, a event.AllocatorID) (pool, inUse, peak int64, blocks int) {
	s := j.spaces[place{d, a}]
	if s == nil {
		return 0, 0, 0, 0
	}
	return s.pool, s.inUse, s.peak, len(s.live)
}

func (j *Judge) space(e *event.Event) *space {
	p := place{e.Device, e.Allocator}
	s := j.spaces[p]
	if s == nil {
		s = &space{rules: j.rules(e.Device, e.Allocator)}
		s.rules.Granule = max(1, s.rules.Granule)
		if s.rules.SizeGranule <= 0 {
			s.rules.SizeGranule = s.rules.Granule
		}
		j.spaces[p] = s
	}
	return s
}

func (j *Judge) judge(e *event.Event) string {
	if e.Time < j.last {
		return fmt.Sprintf("time goes back from %d to %d", j.last, e.Time)
	}
	j.last = e.Time
	switch e.Kind {
	case event.RegionAdd:
		return j.space(e).addRegion(e)
	case event.RegionRemove:
		return j.space(e).removeRegion(e)
	case event.RegionRefused:
		if e.Size == 0 {
			return "a request for no memory cannot be refused"
		}
	case event.Alloc:
		return j.space(e).alloc(e)
	case event.Free:
		return j.space(e).free(e)
	case event.Forward:
		return j.space(e).forward(e)
	case event.OutOfMemory:
		return j.outOfMemory(e)
	default: // the other kinds move no memory
	}
	return ""
}

// after returns the position of the first span that begins at or above addr.
func after(list []span, addr uint64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].addr >= addr })
}

// overlap returns a span that shares a byte with s.
func overlap(list []span, s span) (span, bool) {
	i := after(list, s.addr)
	if i < len(list) && list[i].addr < s.end() {
		return list[i], true
	}
	if i > 0 && list[i-1].end() > s.addr {
		return list[i-1], true
	}
	return span{}, false
}

func insert(list []span, s span) []span {
	i := after(list, s.addr)
	list = append(list, span{})
	copy(list[i+1:], list[i:])
	list[i] = s
	return list
}

func (s *space) shape(e *event.Event) string {
	switch {
	case e.Address == 0:
		return "address 0 stands for no memory"
	case e.Size <= 0:
		return "the size is not positive"
	case e.Address%uint64(s.rules.Granule) != 0:
		return fmt.Sprintf("the address is no multiple of %d", s.rules.Granule)
	case e.Size%s.rules.SizeGranule != 0:
		return fmt.Sprintf("the size is no multiple of %d", s.rules.SizeGranule)
	case e.Address+uint64(e.Size) < e.Address:
		return "it reaches past the end of the address space"
	}
	return ""
}

func (s *space) addRegion(e *event.Event) string {
	if text := s.shape(e); text != "" {
		return text
	}
	r := span{e.Address, e.Size, e.Requested}
	if o, hit := overlap(s.regions, r); hit {
		return fmt.Sprintf("the region lies over the one at %x of %d bytes", o.addr, o.size)
	}
	if e.Requested > e.Size {
		return fmt.Sprintf("the driver gave less than the %d bytes asked for", e.Requested)
	}
	s.regions = insert(s.regions, r)
	s.pool += e.Size
	if s.rules.Limit > 0 && s.pool > s.rules.Limit+s.rules.Slack {
		return fmt.Sprintf("the regions sum to %d bytes, above the limit of %d", s.pool, s.rules.Limit)
	}
	return ""
}

// removeRegion: regions that touch may go as one, but none in part.
func (s *space) removeRegion(e *event.Event) string {
	r := span{addr: e.Address, size: e.Size}
	if b, hit := overlap(s.live, r); hit {
		return fmt.Sprintf("the block at %x of %d bytes is still in use there", b.addr, b.size)
	}
	if s.rules.Page > 0 {
		s.cutRegions(r)
	}
	i := after(s.regions, r.addr)
	n, at := i, r.addr
	for n < len(s.regions) && s.regions[n].addr == at && at < r.end() {
		at = s.regions[n].end()
		n++
	}
	if n == i || at != r.end() {
		return "it is not made of whole regions"
	}
	s.regions = append(s.regions[:i], s.regions[n:]...)
	s.pool -= e.Size
	return ""
}

// cutRegions cuts the regions at the ends of r, where those are page ends.
func (s *space) cutRegions(r span) {
	for _, at := range [...]uint64{r.addr, r.end()} {
		i := after(s.regions, at) - 1
		if i < 0 || s.regions[i].end() <= at || (at-s.regions[i].addr)%uint64(s.rules.Page) != 0 {
			continue
		}
		low := s.regions[i]
		low.size = int64(at - low.addr)
		high := span{addr: at, size: s.regions[i].size - low.size}
		s.regions[i] = low
		s.regions = insert(s.regions, high)
	}
}

// inside reports whether regions that touch cover b.
func (s *space) inside(b span) bool {
	at := b.addr
	i := after(s.regions, at)
	if i == len(s.regions) || s.regions[i].addr != at {
		i--
	}
	for ; i >= 0 && i < len(s.regions); i++ {
		if r := s.regions[i]; r.addr > at || r.end() <= at {
			return false
		} else if at = r.end(); at >= b.end() {
			return true
		}
	}
	return false
}

func (s *space) alloc(e *event.Event) string {
	if text := s.shape(e); text != "" {
		return text
	}
	b := span{e.Address, e.Size, e.Requested}
	if o, hit := overlap(s.live, b); hit {
		return fmt.Sprintf("the block lies over the one at %x of %d bytes", o.addr, o.size)
	}
	switch {
	case e.Requested <= 0:
		return fmt.Sprintf("%d bytes were requested", e.Requested)
	case e.Requested > e.Size:
		return fmt.Sprintf("the block is smaller than the %d bytes requested", e.Requested)
	case !s.inside(b):
		return "the block does not lie inside of a region"
	}
	s.live = insert(s.live, b)
	s.inUse += e.Size
	s.peak = max(s.peak, s.inUse)
	return ""
}

func (s *space) find(e *event.Event) (i int, text string) {
	i = after(s.live, e.Address)
	if i == len(s.live) || s.live[i].addr != e.Address {
		return i, "no block in use begins there"
	}
	if s.live[i].size != e.Size {
		return i, fmt.Sprintf("the block there has %d bytes", s.live[i].size)
	}
	return i, ""
}

func (s *space) free(e *event.Event) string {
	i, text := s.find(e)
	if text != "" {
		return text
	}
	s.live = append(s.live[:i], s.live[i+1:]...)
	s.inUse -= e.Size
	return ""
}

func (s *space) forward(e *event.Event) string {
	i, text := s.find(e)
	if text == "" && e.Requested > e.Size {
		text = fmt.Sprintf("the block is smaller than the %d bytes it now holds", e.Requested)
	}
	if text == "" {
		s.live[i].requested = e.Requested
	}
	return text
}
