package event

// Category says what a block of memory is for. The numbers are part of the
// file format.
type Category uint8

// The categories, in the order in which they are stacked on the memory lane:
// what lives longest lies lowest.
const (
	Unknown            Category = iota
	Parameter                   // variables, from creation to the model's release
	OptimizerState              // slots: momentum, Adam's moments
	Constant                    // graph constants
	Input                       // a batch, from its transfer to its last use
	Activation                  // from the forward op to the last backward op that uses it
	Gradient                    // of a variable, until it is applied
	ActivationGradient          // between backward ops
	Temporary                   // inside one kernel: workspace, scratch
	Output                      // fetched results: loss, predictions

	// Group1 to Group6 are the groups that a foreign file forms of memory that
	// it cannot classify: of the ops that hold most. What they are called is in
	// the facts of their allocator, fields group.1 to group.6; there, Unknown is
	// what is in none of them. See Category.In.
	Group1
	Group2
	Group3
	Group4
	Group5
	Group6
	numCategories
)

// NumGroups is how many groups there are. With them the categories fill the four
// bits that an address map has for one.
const NumGroups = int(numCategories - Group1)

// NumCategories is the number of categories this version knows.
const NumCategories = int(numCategories)

var categoryNames = [NumCategories]string{
	"unknown", "parameter", "optimizer state", "constant", "input",
	"activation", "gradient", "activation gradient", "temporary", "output",
	"group 1", "group 2", "group 3", "group 4", "group 5", "group 6",
}

// String is the category's name on screen and in text.
func (c Category) String() string {
	if int(c) < len(categoryNames) {
		return categoryNames[c]
	}
	return "category-" + itoa(int(c))
}

// Plain is the category, and Unknown for a group: what memory is for, where
// the facts that name a group are not at hand.
func (c Category) Plain() Category {
	if c >= Group1 && c < numCategories {
		return Unknown
	}
	return c
}

// In is the category's name in an allocator with the facts f: of a group what
// they call it, and of what is in none of them "other".
func (c Category) In(f Fields) string {
	switch {
	case c.Plain() != c:
		if name := f.Text(GroupKey(int(c - Group1))); name != "" {
			return name
		}
	case c == Unknown:
		if _, ok := f.Get(GroupKey(0)); ok {
			return "other"
		}
	}
	return c.String()
}

// GroupKey is the key under which an allocator's facts name group i, counted
// from 0.
func GroupKey(i int) string { return "group." + itoa(i+1) }

// IsGroupKey reports whether a field of facts names a group.
func IsGroupKey(key string) bool {
	for i := range NumGroups {
		if key == GroupKey(i) {
			return true
		}
	}
	return false
}

// ParseCategory is the inverse of Category.String.
func ParseCategory(s string) (Category, bool) { return parseName[Category](categoryNames[:], s) }

// TransferCause says why bytes crossed between devices.
type TransferCause uint8

// The causes of a transfer.
const (
	CauseUnknown      TransferCause = iota
	CauseExplicit                   // the program asked for the copy
	CausePlacement                  // producer and consumer were placed apart
	CauseInput                      // a batch on its way to the device
	CauseFetch                      // a result read back
	CauseHostArgument               // a kernel wants this argument in host memory
	CauseSwap                       // memory moved to the host to make room
	CauseInitial                    // first values of variables and constants
	numTransferCauses
)

var transferCauseNames = [numTransferCauses]string{
	"unknown", "explicit copy", "placement", "input", "fetch", "host argument", "swap", "initial value",
}

// String is the cause's name on screen and in text.
func (c TransferCause) String() string {
	if int(c) < len(transferCauseNames) {
		return transferCauseNames[c]
	}
	return "cause-" + itoa(int(c))
}

// ParseTransferCause is the inverse of TransferCause.String.
func ParseTransferCause(s string) (TransferCause, bool) {
	return parseName[TransferCause](transferCauseNames[:], s)
}

// OOMCause is the verdict on a failed request: the smallest change that would
// have let it pass. The words are used in files, on screen and in JSON.
type OOMCause uint8

// The causes of an out-of-memory.
const (
	OOMUndetermined         OOMCause = iota
	OOMFull                          // too few free bytes in any arrangement
	OOMFragmented                    // enough free bytes, no single run
	OOMLimitTooLow                   // the allocator's own limit is below the need
	OOMOtherProcess                  // somebody else holds the card
	OOMRequestExceedsDevice          // larger than the device ever was
	OOMHostPinnedLimit               // the pinned host pool is exhausted
	OOMRetryable                     // waiting for frees already asked for suffices
	OOMNotMemory                     // the size is nonsense: a bug elsewhere
	numOOMCauses
)

var oomCauseNames = [numOOMCauses]string{
	"undetermined", "full", "fragmented", "limit_too_low", "other_process",
	"request_exceeds_device", "host_pinned_limit", "retryable", "not_a_memory_problem",
}

// String is the verdict's word.
func (c OOMCause) String() string {
	if int(c) < len(oomCauseNames) {
		return oomCauseNames[c]
	}
	return "oom-" + itoa(int(c))
}

// ParseOOMCause is the inverse of OOMCause.String.
func ParseOOMCause(s string) (OOMCause, bool) { return parseName[OOMCause](oomCauseNames[:], s) }

// EndReason says how a run ended.
type EndReason uint8

// The ways a run can end.
const (
	EndDone        EndReason = iota // all steps ran
	EndOutOfMemory                  // a request failed for good: a finding
	EndStopped                      // somebody stopped it
	EndFailed                       // an error that is not about memory
	numEndReasons
)

var endReasonNames = [numEndReasons]string{"done", "out of memory", "stopped", "failed"}

// String is the reason's name on screen and in text.
func (r EndReason) String() string {
	if int(r) < len(endReasonNames) {
		return endReasonNames[r]
	}
	return "end-" + itoa(int(r))
}

// ParseEndReason is the inverse of EndReason.String.
func ParseEndReason(s string) (EndReason, bool) { return parseName[EndReason](endReasonNames[:], s) }

// The values of Event.Category for OpBegin and OpEnd: which part of a step the
// op belongs to.
const (
	OpForward  Category = iota // forward pass, or inference
	OpBackward                 // gradients
	OpUpdate                   // optimizer
	OpInput                    // feeding and preparing the batch
	OpCopy                     // inserted by placement
)
