package snapshot

import "tideline/shared/ingest/pickle"

// key is a dict key that the layouts use.
type key uint8

const (
	otherKey key = iota
	kAction
	kAddr
	kSize
	kStream
	kFrames
	kTime
	kPool
	kDeviceFree
	kMeta
	kFile
	kLine
	kName
	kState
	kRequested
	kAddress
	kHistory
	kRealSize
	kTotal
	kAllocated
	kActive
	kDevice
	kType
	kSegmentPool
	kExpandable
	kBlocks

	keySlots = 32 // a power of two beyond the last key
)

var keyNames = map[string]key{
	"action": kAction, "addr": kAddr, "size": kSize, "stream": kStream, "frames": kFrames, "time_us": kTime,
	"pool_id": kPool, "device_free": kDeviceFree, "user_metadata": kMeta, "filename": kFile, "line": kLine,
	"name": kName, "state": kState, "requested_size": kRequested, "address": kAddress, "history": kHistory,
	"real_size": kRealSize, "total_size": kTotal, "allocated_size": kAllocated, "active_size": kActive,
	"device": kDevice, "segment_type": kType, "segment_pool_id": kSegmentPool, "is_expandable": kExpandable,
	"blocks": kBlocks,
}

// words are values that stand for a number.
var words = func() map[string]uint8 {
	w := map[string]uint8{
		"inactive": uint8(Inactive), "active_allocated": uint8(ActiveAllocated),
		"active_pending_free": uint8(ActivePendingFree), "active_awaiting_free": uint8(ActivePendingFree),
	}
	for a, n := range actionNames {
		w[n] = uint8(a)
	}
	return w
}()

// codes says what the texts of a file are, by their numbers, so that each is
// looked at once.
type codes struct {
	keys  []key
	words []uint8
}

func (c *codes) learn(m *pickle.Machine, n uint32) {
	for uint32(len(c.keys)) <= n {
		s := m.TextAt(uint32(len(c.keys)))
		c.keys = append(c.keys, keyNames[s])
		c.words = append(c.words, words[s])
	}
	m.Charge(2)
}

func (c *codes) key(m *pickle.Machine, v pickle.Value) key {
	n, ok := v.TextNumber()
	if !ok {
		return otherKey
	}
	if n >= uint32(len(c.keys)) {
		c.learn(m, n)
	}
	return c.keys[n]
}

func (c *codes) word(m *pickle.Machine, v pickle.Value) uint8 {
	n, ok := v.TextNumber()
	if !ok {
		return 0
	}
	if n >= uint32(len(c.words)) {
		c.learn(m, n)
	}
	return c.words[n]
}
