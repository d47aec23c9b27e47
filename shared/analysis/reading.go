package analysis

import (
	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
	"tideline/shared/ingest/bfclog"
)

type amount = cause.Amount

// Verdict is the word for why a request failed.
type Verdict string

// The verdicts that a failed allocation can get, besides the names of
// event.OOMCause.
const (
	Full                     Verdict = "full"
	Fragmented               Verdict = "fragmented"
	LimitTooLow              Verdict = "limit_too_low"
	OtherProcess             Verdict = "other_process"
	HostPinnedLimit          Verdict = "host_pinned_limit"
	Retryable                Verdict = "retryable"
	RequestExceedsDevice     Verdict = "request_exceeds_device"
	NotMemory                Verdict = "not_a_memory_problem"
	LeakManyEqualChunks      Verdict = "leak_many_equal_chunks"
	FullOrFragmentedByBar    Verdict = "full_or_fragmented_by_bar"
	FragmentedPoolOrCached   Verdict = "fragmented_pool_or_cached"
	DriverRefusedDespiteFree Verdict = "driver_refused_despite_free"
	UndeterminedTruncated    Verdict = "undetermined_truncated"
	UndeterminedNoState      Verdict = "undetermined_no_state"
	UndeterminedNoRequest    Verdict = "undetermined_no_request"
)

// Undetermined says whether the input does not allow a decision.
func (v Verdict) Undetermined() bool {
	return v == UndeterminedTruncated || v == UndeterminedNoState || v == UndeterminedNoRequest
}

// Reading is what one failure means. Amounts are bytes; an unknown one is not
// in the input and does not follow from it.
type Reading struct {
	Line      int // of the log where it begins; 0 for our own timelines
	Allocator string
	Device    string
	Op, Node  string
	ByOp      string // op that the allocator itself names
	ByOpKnown bool

	RequestedText string
	Requested     amount
	Exact         bool   // Requested is not a figure of rounded text
	Basis         string // what Requested follows from
	Rounded       amount

	Shape       []int64
	DType       string
	ElementSize amount

	Limit, Pool, Available, NextRegion amount
	InUse, Peak, Allocs, LargestAlloc  amount
	LimitText, InUseText, PeakText     string // when only rounded text is there

	Free             amount // in the pool, or up to the limit where the pool is unknown
	FreeIsOfLimit    bool   // the latter
	LargestFree      amount
	LargestFreeText  string // rounded text, where bytes are not told
	LargestFreeAt    uint64 // address, when the chunk is listed
	Fragmentation    float64
	HasFragmentation bool

	UsedChunks, FreeChunks        amount // counts over the whole pool
	ListedUsed, ListedUsedBytes   amount // of the chunk list that is there
	ListedFree, ListedFreeBytes   amount
	ListComplete                  bool
	SummaryBytes                  amount
	BinChunks, BinUsed, BinFree   amount // counts
	LargestUsed                   amount
	DominantSize, DominantCount   amount
	OversizedTail                 amount
	Waste                         amount // in use, but not requested: tails of chunks handed out whole
	WasteText                     string // the same as far as rounded text tells it
	Regions                       amount // a count
	RegionSizes, Refusals, Pinned []int64
	Growth                        bfclog.Tri
	Collected                     bool
	Bar                           string
	HasBar                        bool
	PoolAtMost                    amount // what an all but empty pool can be, by its bar
	LargestFreeFieldZero          bool   // the Stats field that is 0 by design
	DeviceTotal, DriverFree       amount
	Start                         bfclog.Start // of the device, as the program found it
	Obtainable                    amount       // what the allocator could have without its limit
	Truncated                     bool
	Missing                       []string
	Faces                         []string
	Usage                         []bfclog.Holder
	FormatVariant                 string
	NotFailure                    bool
	HostPinned, FreeOnlyBins      bool
	Recorded                      bool // as an event of a run, not read from a log
	FromMap                       bool // read from a memory map, which does not tell the request
	Stamped                       bool // free chunks of a memory map carry stamps: not all need be usable

	Holders []Held // what is in use by op, the largest first; builds with memory debugging only

	Map event.ChunkMap // whatever chunks are known

	Decision    cause.Verdict
	Verdict     Verdict
	Findings    []string // secondary words, the weightiest first
	LikelyCause string
	Certain     []string // what holds although the verdict is open
	Assumed     []string // what was taken for granted, as sentences
}

// DominantBytes is what the chunks of the commonest size hold together.
func (r *Reading) DominantBytes() amount {
	if !r.DominantSize.Known {
		return amount{}
	}
	return cause.Of(r.DominantSize.N * r.DominantCount.N)
}

// DominantShare is their part of everything in use, 0 to 1.
func (r *Reading) DominantShare() (float64, bool) {
	b := r.DominantBytes()
	if !b.Known || !r.InUse.Known || r.InUse.N <= 0 {
		return 0, false
	}
	return float64(b.N) / float64(r.InUse.N), true
}

// Packed is what could be had if everything in use were moved together: what is
// free in the pool, and what the limit and the driver would still give.
func (r *Reading) Packed() amount {
	a := r.Decision.AfterCompaction
	a.N = max(0, a.N)
	return a
}

// Shortfall is what a perfectly compacted pool would still lack.
func (r *Reading) Shortfall() amount { return r.Decision.Missing }

// TailsHoldIt says that no compaction would make room, but that the unused
// tails of chunks hold at least what is missing.
func (r *Reading) TailsHoldIt() bool {
	m := r.Shortfall()
	waste := exactly(r.Waste.N)
	if !r.Waste.Known {
		text, _ := bfclog.ParseSize(r.WasteText)
		waste = spanOfSize(text)
	}
	return m.Known && m.N > 0 && waste.lo >= m.N && r.Free.Known && r.Requested.Known
}

func fromSize(s bfclog.Size) amount {
	if !s.Exact() {
		return amount{}
	}
	return cause.Of(s.N)
}
