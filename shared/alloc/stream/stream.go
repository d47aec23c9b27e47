// Package stream keeps the order of work on a device's streams: how far each
// has been given work, how far it has come, and what each is known to be
// behind of others. Allocators whose blocks belong to streams ask it when
// memory freed on one may be used on another.
//
// It has no clock: who owns the time says when a stream has come further. It
// does no work of its own and is not safe for concurrent use.
package stream

// ID is a stream's number; 0 is the default stream.
type ID uint32

// Order is the state of all streams. The zero value has no work on any.
type Order struct{ at []state }

type state struct {
	given, done uint64
	synced      uint64 // given at the last Synchronize
	// seen[x] is the mark of stream x that this stream's later work comes
	// behind of.
	seen []uint64
}

func (o *Order) of(s ID) *state {
	for len(o.at) <= int(s) {
		o.at = append(o.at, state{})
	}
	return &o.at[s]
}

// Mark is a point behind all work given to the stream so far. The first is 1.
func (o *Order) Mark(s ID) uint64 {
	x := o.of(s)
	x.given++
	return x.given
}

// Done reports whether the stream has come to the mark.
func (o *Order) Done(s ID, mark uint64) bool {
	return int(s) < len(o.at) && o.at[s].done >= mark
}

// Behind reports whether what is given to the stream from now on runs behind
// the mark of on: both are the same stream, or it has waited for it.
func (o *Order) Behind(s, on ID, mark uint64) bool {
	if s == on {
		return true
	}
	if int(on) >= len(o.at) {
		return mark == 0
	}
	return o.at[on].synced >= mark || int(s) < len(o.at) && int(on) < len(o.at[s].seen) && o.at[s].seen[on] >= mark
}

// Wait makes the stream wait for all that on has been given so far (an event
// recorded there), and so for all that on waited for.
func (o *Order) Wait(s, on ID) {
	if s == on {
		return
	}
	o.of(max(s, on))
	x, y := &o.at[s], &o.at[on]
	x.see(on, y.given)
	for i, mark := range y.seen {
		x.see(ID(i), mark)
	}
}

func (x *state) see(on ID, mark uint64) {
	for len(x.seen) <= int(on) {
		x.seen = append(x.seen, 0)
	}
	x.seen[on] = max(x.seen[on], mark)
}

// Finish says that the stream has done all it was given. What it waited for is
// done, too.
func (o *Order) Finish(s ID) {
	x := o.of(s)
	x.done = x.given
	for i, mark := range x.seen {
		y := o.of(ID(i))
		y.done = max(y.done, mark)
	}
}

// Join says that the host waited for the stream: whatever is given to any
// stream from now on comes behind its work.
func (o *Order) Join(s ID) {
	o.Finish(s)
	x := &o.at[s]
	x.synced = x.given
	for i, mark := range x.seen {
		y := &o.at[i]
		y.synced = max(y.synced, mark)
	}
}

// Synchronize says that every stream has done all it was given, and that the
// host knows: whatever is given from now on comes behind all of it.
func (o *Order) Synchronize() {
	for s := range o.at {
		x := &o.at[s]
		x.done, x.synced = x.given, x.given
	}
}
