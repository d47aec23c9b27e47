package exec

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/analysis/cause"
	"tideline/shared/program"
)

// OOM is a request that failed for good.
type OOM struct {
	Device    event.DeviceID
	Allocator string
	Op        string
	Tensor    string
	Step      int32
	Requested int64 // bytes
	Verdict   cause.Verdict
	Stats     alloc.Stats
}

const granule = 256

// outOfMemory tells the failure: TensorFlow's message, and an event with the
// verdict and everything that the allocator held.
func (r *Runtime) outOfMemory(q *request) {
	s := &r.spaces[q.space]
	st := s.memory.Stats()
	rounded := (q.bytes + granule - 1) / granule * granule
	v := cause.Decide(r.facts(s, &st, q.bytes, rounded))
	if d := r.cfg.Devices[s.device]; d.Alone > d.Limit && st.InUse+rounded > d.Limit && st.InUse+rounded <= d.Alone {
		// The limit was worked out from what others had left free; without them
		// this request would have had room.
		v.Cause = event.OOMOtherProcess
	}
	r.oom = &OOM{
		Device: s.device, Allocator: s.memory.Name(), Op: r.strings.At(q.op), Tensor: r.strings.At(q.tensor),
		Step: r.step, Requested: q.bytes, Verdict: v, Stats: st,
	}
	text := fmt.Sprintf("OOM when allocating tensor with %s on %s by allocator %s [op %s]",
		describe(q), r.cfg.Devices[s.device].Name, s.memory.Name(), r.oom.Op)
	if r.cfg.Mode != Eager {
		text += "; hint: the chunk map of the out-of-memory event tells what was allocated then"
	}
	r.Log(s.device, event.Failure, text)
	r.ev = event.Event{
		Kind: event.OutOfMemory, Device: s.device, Allocator: s.id, Size: rounded, Requested: q.bytes, Op: q.op,
		Tensor: q.tensor, Step: r.step, Cause: uint8(v.Cause), Text: r.strings.ID(s.memory.ChunkMap().Encode()),
	}
	r.out.host(&r.ev)
	r.fail(ErrOutOfMemory)
}

// describe writes a tensor's shape and type as TensorFlow's message on a failed
// allocation does, with the C++ names of types.
func describe(q *request) string {
	if q.value == nil {
		return fmt.Sprintf("shape[%d] and type uint8", q.bytes)
	}
	name := q.value.DType.String()
	switch q.value.DType {
	case program.Float32:
		name = "float"
	case program.Float64:
		name = "double"
	case program.Float16:
		name = "half"
	default:
	}
	return "shape" + q.value.Shape.String() + " and type " + name
}

func (r *Runtime) facts(s *space, st *alloc.Stats, bytes, rounded int64) cause.Inputs {
	in := cause.Inputs{
		Request: cause.Of(bytes), Rounded: cause.Of(rounded), Grow: cause.Of(rounded),
		Reserved: cause.Of(st.Pool), InUse: cause.Of(st.InUse), LargestFree: cause.Of(st.LargestFree),
		Pending: cause.Of(0), HostPinned: s.pinned,
	}
	if l := s.memory.Limit(); l > 0 {
		in.Limit = cause.Of(l)
	}
	if d := r.cfg.Devices[s.device]; !d.IsHost() {
		free := d.Card.Free()
		ours := d.Context
		for i := range r.spaces {
			if o := r.cfg.Devices[r.spaces[i].device]; o.Card == d.Card && r.spaces[i].memory != nil {
				ours += r.spaces[i].memory.Stats().Pool
			}
		}
		in.DeviceTotal, in.DriverFree = cause.Of(d.Card.Total()), cause.Of(free)
		// What a limit that was worked out leaves to libraries is not to be had
		// either: such a limit is never too low, it is all there is.
		in.Outside = cause.Of(d.Context + d.Reserve)
		in.Others = cause.Of(max(0, d.Card.Total()-free-ours))
	}
	return in
}
