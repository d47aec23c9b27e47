package export

import (
	"cmp"
	"slices"

	"tideline/protocol/event"
)

// Block is an allocation that lives.
type Block struct {
	Begin           int64 // nanoseconds
	Size, Requested int64 // bytes
	Order           int64 // how many blocks began before
	Op, Tensor      event.StringID
	Step            int32
	Device          event.DeviceID
	Category        event.Category
	Stream          event.StreamID
	// Taken says that the block was taken over in place and not asked for anew.
	Taken bool
}

// Live is what lives at the moment. The zero value is ready to use.
type Live struct {
	blocks map[Key]Block
	begun  int64
}

// Take follows an Alloc, a Free or a Forward. It calls ended for a block that
// is over and began for one that begins, each at most once, in that order. An
// Alloc where a block lives already ends that one: its free is missing.
func (l *Live) Take(e *event.Event, ended, began func(k Key, b *Block)) {
	k := Key{e.Allocator, e.Address}
	old, lives := l.blocks[k]
	switch e.Kind {
	case event.Alloc:
		if lives {
			ended(k, &old)
		}
		l.begin(k, e, false, began)
	case event.Free:
		if lives {
			ended(k, &old)
			delete(l.blocks, k)
		}
	case event.Forward:
		if !lives {
			return
		}
		ended(k, &old)
		x := *e
		x.Size = old.Size // no memory moved
		l.begin(k, &x, true, began)
	default:
	}
}

func (l *Live) begin(k Key, e *event.Event, taken bool, began func(k Key, b *Block)) {
	if l.blocks == nil {
		l.blocks = map[Key]Block{}
	}
	b := Block{
		Begin: e.Time, Size: e.Size, Requested: e.Requested, Order: l.begun, Op: e.Op, Tensor: e.Tensor,
		Step: e.Step, Device: e.Device, Category: e.Category.Plain(), Stream: e.Stream, Taken: taken,
	}
	l.begun++
	l.blocks[k] = b
	began(k, &b)
}

// Rest are the blocks that live, in the order in which they began.
func (l *Live) Rest() []Key {
	keys := make([]Key, 0, len(l.blocks))
	for k := range l.blocks {
		keys = append(keys, k)
	}
	sortKeys(keys, l.blocks)
	return keys
}

// Block is a block that lives.
func (l *Live) Block(k Key) Block { return l.blocks[k] }

func sortKeys(keys []Key, blocks map[Key]Block) {
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(blocks[a].Order, blocks[b].Order) })
}
