package remedy

import (
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/torch"
)

// action is what a call does.
type action uint8

const (
	ask     action = iota // a request that the original served
	refused               // a request that the original refused
	drop                  // a block is given back
	empty                 // the program gives idle memory back (empty_cache)
	stepEnd               // the host has waited for the device
)

// call is one call of the allocator. It holds no pointers.
type call struct {
	bytes  int64
	slot   int32
	stream uint32
	pool   uint16 // number in sequence.pools
	what   action
	stays  bool // for the whole run, as parameters do
}

// sequence is what is replayed: first what builds up the state at the
// beginning, then what was recorded.
type sequence struct {
	calls   []call
	pools   []torch.PoolID // number 0 is the default pool
	held    []uint64       // addresses of the first slots, held when the replay begins
	spare   []int32
	slots   int32
	begins  int // number of the first recorded call
	fails   int // refused calls
	streams uint32
}

func newSequence(room int) *sequence {
	return &sequence{calls: make([]call, 0, room), pools: []torch.PoolID{{}}}
}

func (s *sequence) take() int32 {
	if n := len(s.spare); n > 0 {
		x := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return x
	}
	s.slots++
	return s.slots - 1
}

func (s *sequence) add(c call) int32 {
	if c.what == ask || c.what == refused {
		c.slot = s.take()
	}
	s.streams = max(s.streams, c.stream+1)
	s.calls = append(s.calls, c)
	if c.what == refused {
		s.fails++
		s.spare = append(s.spare, c.slot)
	}
	return c.slot
}

func (s *sequence) drop(slot int32) {
	s.calls = append(s.calls, call{what: drop, slot: slot})
	s.spare = append(s.spare, slot)
}

// pool is the number of a pool, which it gets when it is new.
func (s *sequence) pool(id torch.PoolID) uint16 {
	for i, p := range s.pools {
		if p == id {
			return uint16(i)
		}
	}
	if len(s.pools) == maxPools {
		return 0
	}
	s.pools = append(s.pools, id)
	return uint16(len(s.pools) - 1)
}

const maxPools = 1 << 12

// last is the last refused call, which ends the replay; nil when nothing was
// refused.
func (s *sequence) last() *call {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if s.calls[i].what == refused {
			return &s.calls[i]
		}
	}
	return nil
}

// cut leaves out what came after the last refused call: the program would have
// gone another way.
func (s *sequence) cut() {
	for n := len(s.calls); n > 0; n-- {
		if s.calls[n-1].what == refused {
			s.calls = s.calls[:n]
			return
		}
	}
}

// trace is the sequence for those who replay traces; of head see
// contest.NewBuilder. Only a sequence without held blocks is one.
func (s *sequence) trace(head *contest.Trace) *contest.Trace {
	if len(s.pools) > 1 {
		head.Pools = s.pools
	}
	b := contest.NewBuilder(head)
	for i := range s.calls {
		if i == s.begins && i > 0 {
			b.Begin()
		}
		c := &s.calls[i]
		x := contest.Call{Bytes: c.bytes, Slot: c.slot, Stream: stream.ID(c.stream), Pool: c.pool, Parameter: c.stays}
		switch c.what {
		case ask:
		case refused:
			x.Fails = true
		case drop:
			x.Kind, x.Bytes = contest.Free, 0
		case empty:
			x.Kind = contest.GiveBack
		case stepEnd:
			x.Kind = contest.EndStep
		}
		b.Add(x)
	}
	if s.begins > 0 && s.begins == len(s.calls) {
		b.Begin()
	}
	return b.Trace()
}
