package event

// Kind says what an Event tells. The numbers are part of the file format:
// they are never reused, and new ones are only appended.
type Kind uint8

// The kinds, with the Event fields that each one uses besides Time and Kind.
const (
	// Invalid is the zero Kind. No stream contains it.
	Invalid Kind = iota

	// RegionAdd: an allocator got memory from the driver. Device, Allocator,
	// Address, Size (received), Requested (asked for).
	RegionAdd
	// RegionRemove: it gave a region back. Device, Allocator, Address, Size.
	RegionRemove
	// RegionRefused: the driver said no. Device, Allocator, Size (asked for).
	RegionRefused

	// Alloc: a block was handed out. Device, Allocator, Address, Size
	// (rounded, what the allocator took), Requested, Tensor, Op, Category,
	// Step, Stream.
	Alloc
	// Free: it came back. Device, Allocator, Address, Size, Step, Stream.
	Free
	// Forward: a live block was taken over by another tensor in place; no
	// memory moved. Device, Allocator, Address, Size, Requested, Tensor (the
	// new one), Op, Category (the new one), Step.
	Forward

	// TransferBegin and TransferEnd bracket one copy. Device (source), Peer
	// (destination), Size (bytes), ID (pairs the two), Stream, Cause (a
	// TransferCause), Flags (Pinned, DriverStaged), Op (on whose behalf),
	// Tensor, Step.
	TransferBegin
	TransferEnd

	// OpBegin and OpEnd bracket the work of one op on its device. Device,
	// Stream, Op, ID (pairs the two), Step, Category (OpForward …).
	OpBegin
	OpEnd

	// StepBegin and StepEnd bracket a step. Step, Size (the batch).
	StepBegin
	StepEnd

	// StallBegin and StallEnd bracket the time in which a step waits for its
	// input. Device (that idles), Step, ID, Op (the stage to blame).
	StallBegin
	StallEnd
	// StageBegin and StageEnd bracket one element's work in one stage of the
	// input pipeline. Op (stage name), ID, Stream (worker), Size (bytes out).
	StageBegin
	StageEnd
	// QueueDepth: a pipeline buffer changed. Op (stage), Size (elements
	// buffered), Requested (its capacity).
	QueueDepth

	// OutOfMemory: a request failed for good. Device, Allocator, Size
	// (rounded), Requested, Op, Tensor, Step, Cause (an OOMCause), Text (a
	// ChunkMap in text form).
	OutOfMemory

	// Settings: what was asked of this run. Text (Fields: a flattened workload).
	Settings
	// DeviceFacts: a device exists. Device, Text (Fields: name, kind, preset,
	// total, free, limit, …). Comes before any other event of that device.
	DeviceFacts
	// AllocatorFacts: an allocator exists. Device, Allocator, Size (limit in
	// bytes, 0 when unlimited), Text (Fields: name, kind, growth,
	// group.1 to group.6, …).
	AllocatorFacts
	// Placement: where an op was put and why. Device, Op, Text (the reason).
	Placement

	// Sample: a named number at an instant. Device, Op (series name), Size
	// (the value), Requested (what it is part of, such as all memory of a card;
	// 0 where it is part of nothing).
	Sample
	// Metric: a real number about training (loss, accuracy). Op (its name),
	// Step, Size (the float64's bits).
	Metric
	// Log: a line for people. Device, Text, Flags (severity).
	Log
	// Annotation: a remark tied to a moment. Text, Step.
	Annotation

	// Lost: events are missing here. Size (how many), Text (why).
	Lost
	// End: the run is over; nothing follows. Cause (an EndReason), Text.
	End

	numKinds
)

// NumKinds is the number of kinds this version knows, Invalid included.
const NumKinds = int(numKinds)

// Ids. All are dense and small, so that tables can be plain slices.
type (
	// DeviceID numbers the devices of a run in the order of their DeviceFacts.
	DeviceID uint16
	// AllocatorID numbers the allocators of a run.
	AllocatorID uint16
	// StreamID numbers the queues of one device; see the Stream constants.
	StreamID uint8
	// StringID is an index into the run's Strings; 0 is the empty string.
	StringID uint32
)

// The streams every accelerator has. A host device uses StreamCompute only.
const (
	StreamCompute StreamID = iota
	StreamH2D
	StreamD2H
	StreamD2D
)

// NoStep is the Step of what happens outside of any step.
const NoStep int32 = -1

// Event is one thing that happened. It holds no pointers, so millions of them
// cost the garbage collector nothing. Which fields carry meaning depends on
// Kind and is said at its constants; the others are zero, except Step, which
// is NoStep outside of steps.
type Event struct {
	Time      int64  // nanoseconds since the run began
	Address   uint64 // in the device's address space
	Size      int64  // bytes unless the kind says otherwise
	Requested int64  // bytes unless the kind says otherwise
	ID        uint64 // pairs a begin with its end; unique within the kind
	Op        StringID
	Tensor    StringID
	Text      StringID
	Step      int32
	Device    DeviceID
	Peer      DeviceID
	Allocator AllocatorID
	Kind      Kind
	Category  Category
	Stream    StreamID
	Cause     uint8
	Flags     Flags
}

// Flags are bits whose meaning depends on the kind.
type Flags uint8

const (
	// Pinned says that a transfer's host side is page-locked.
	Pinned Flags = 1 << iota
	// DriverStaged says that the driver routed a device-to-device copy through the host.
	DriverStaged
	// Modelled says that the event's duration comes from a cost model, not a clock.
	Modelled
	// Retryable marks a failed request whose caller can do without (a workspace).
	Retryable
	// Warning is the middle severity of a Log; without a flag it is information.
	Warning
	// Failure is the highest severity of a Log.
	Failure
)

// Sink takes a run's events in order. The event is only valid during the
// call: an implementation copies what it keeps.
type Sink interface {
	Emit(e *Event)
}

// SinkFunc makes a function a Sink.
type SinkFunc func(e *Event)

// Emit calls f.
func (f SinkFunc) Emit(e *Event) { f(e) }

var kindNames = [NumKinds]string{
	"invalid", "region-add", "region-remove", "region-refused",
	"alloc", "free", "forward", "transfer-begin", "transfer-end",
	"op-begin", "op-end", "step-begin", "step-end",
	"stall-begin", "stall-end", "stage-begin", "stage-end", "queue-depth",
	"out-of-memory", "settings", "device-facts", "allocator-facts", "placement",
	"sample", "metric", "log", "annotation", "lost", "end",
}

// String is the kind's name in the text form of a timeline.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind-" + itoa(int(k))
}

// ParseKind is the inverse of Kind.String; ok is false for an unknown name.
func ParseKind(s string) (k Kind, ok bool) { return parseName[Kind](kindNames[:], s) }

func parseName[T ~uint8](names []string, s string) (T, bool) {
	for i, n := range names {
		if n == s {
			return T(i), true
		}
	}
	return 0, false
}

func itoa(n int) string {
	if n == 0 {
		return "0"
	}
	var b [8]byte
	i := len(b)
	for ; n > 0; n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}
