package block

import "tideline/protocol/event"

// The columns of an events payload, in order. The numbers are part of the
// format.
const (
	colStringLengths = iota
	colStringBytes
	colHeads     // the table of heads
	colHead      // one row number per event
	colTime      // ns since the event before
	colStep      // change of the step
	colOp        // difference from the predicted op
	colTensor    // difference from the predicted tensor
	colText      // the text's id
	colID        // difference from the predicted id
	colAddress   // difference from the predicted address
	colSize      // the size
	colRequested // the requested size
	colPlace     // a slot of the address cache
	colValue     // a slot of the value cache
	colDistance  // how many allocations ago the freed block was handed out
	numColumns
)

// width is the most bytes that one event can add to a column.
var width = [numColumns]int{
	colHead: 3, colTime: 10, colStep: 5, colOp: 5, colTensor: 5, colText: 5, colID: 10,
	colAddress: 10, colSize: 10, colRequested: 10, colPlace: 1, colValue: 2, colDistance: 3,
}

// How a head says that the fields of its events are coded. A field without a
// bit is as predicted.
const (
	codedTime uint16 = 1 << iota
	codedStep
	codedOp
	codedTensor
	codedText
	codedID

	addressShift   = 6 // three bits: an address code
	sizeShift      = 9 // two bits: a value code
	requestedShift = 11

	addressMask    = 7 << addressShift
	sizeMask       = 3 << sizeShift
	requestedMask  = 3 << requestedShift
	unknownCodings = 7 << 13
)

// Codes of an address.
const (
	addressPredicted = iota
	addressFollows   // right behind the last allocation of the device
	addressCached    // freed before at this place: a slot of the address cache
	addressPages     // difference in units of 256 bytes
	addressBytes     // difference in bytes
)

// addressCodes has a bit for each address code that a model allows. In a free
// addressFollows stands for the distance to the allocation that it ends.
var addressCodes = [numModels]uint8{
	modelPlain: 1<<addressPredicted | 1<<addressPages | 1<<addressBytes,
	modelAlloc: 1<<addressPredicted | 1<<addressFollows | 1<<addressCached | 1<<addressPages | 1<<addressBytes,
	modelFree:  1<<addressPredicted | 1<<addressFollows | 1<<addressPages | 1<<addressBytes,
}

// Codes of a size or requested size.
const (
	valuePredicted = iota
	valueCached
	valueLiteral
	numValueCodes
)

// The models that predict a field. The writer chooses; the head names it.
const (
	modelPlain = iota // from the event before of the same kind
	modelAlloc        // from the allocation before of the same tensor
	modelFree         // from the allocation that it ends
	numModels
)

var modelOf = [256]uint8{event.Alloc: modelAlloc, event.Forward: modelAlloc, event.Free: modelFree}

const (
	successors = 1 << 12
	tensors    = 1 << 11
	slots      = 1 << 8
	devices    = 1 << 4
)

// placed is where a tensor lay when it was last allocated.
type placed struct {
	address   uint64
	size      int64
	requested int64
}

// recent is what the last event of a kind held.
type recent struct {
	id        uint64
	address   uint64
	size      int64
	requested int64
	op        event.StringID
	tensor    event.StringID
}

// predictor is the state that writer and reader keep alike. It starts empty
// in every block.
type predictor struct {
	time       int64
	step       int32
	running    event.StringID // op of the last OpBegin
	lastTensor event.StringID // of the last allocation
	end        [devices]uint64
	place      [slots]uint64
	value      [slots]int64
	// after holds by how much the id that followed last time differed.
	after [successors]uint32
	last  [256]recent
	held  [tensors]placed
}

// reset empties the predictor.
func (p *predictor) reset() { *p = predictor{step: event.NoStep} }

// successor is the slot of the table after for the id that follows last in
// events of a kind. A salt parts ops from tensors.
func successor(kind event.Kind, salt, last uint32) uint32 {
	return (last + uint32(kind)*97 + salt) % successors
}

const (
	saltOp     = 0
	saltTensor = 1031
)

// placeSlot is the slot of an address in the address cache.
func placeSlot(a uint64) uint8 { return uint8((a >> 8) * 0x9E3779B97F4A7C15 >> 56) }

// valueSlot is the slot of a value in the value cache.
func valueSlot(v int64) uint8 { return uint8(uint64(v) * 0x9E3779B97F4A7C15 >> 56) }

// rounded is the size that an allocator with 256-byte granularity takes.
func rounded(requested int64) int64 { return (requested + 255) &^ 255 }

// nextID predicts the id that follows. Kinds without ids keep 0.
func nextID(last uint64) uint64 {
	if last == 0 {
		return 0
	}
	return last + 1
}

func zigzag(d int64) uint64   { return uint64(d)<<1 ^ uint64(d>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
