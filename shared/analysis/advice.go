package analysis

import (
	"fmt"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/ingest/bfclog"
)

// Advice is one thing to do about a failed request. It follows from the facts
// of the reading; whether it helps is for a rerun to show.
type Advice struct {
	Text string // a sentence or two
}

// Advice says what to do about the failure, the first thing first. For a full
// pool no allocator setting is named, because none would change the outcome.
func (r *Reading) Advice() []Advice {
	var out []Advice
	add := func(format string, args ...any) { out = append(out, Advice{fmt.Sprintf(format, args...)}) }
	r.wholeDataSet(add)
	switch r.Verdict {
	case Full:
		r.nextFull(add)
	case Fragmented:
		r.nextFragmented(add)
	case LimitTooLow:
		r.nextLimit(add)
	case OtherProcess:
		add("Find who holds the card (nvidia-smi lists processes) and end it, or use another card. A higher limit changes nothing.")
		if r.LargestFree.Known && r.LargestFree.N > 0 {
			r.smaller(add)
		}
	case HostPinnedLimit:
		if len(r.Pinned) > 0 && r.Allocator == "" && !r.Limit.Known {
			add("See how much RAM is free, and how much of it this process may have and lock (its container's limit, ulimit -l); copy less from the host at a time.")
			break
		}
		add("Copy less from the host at a time, or release host tensors sooner.")
		add("The limit of this pool is a setting of the process: TF_GPU_HOST_MEM_LIMIT_IN_MB (TF_CUDA_HOST_MEM_LIMIT_IN_MB in old versions). It is page-locked RAM, so raise it within what the machine has.")
		if r.OversizedTail.Known && r.OversizedTail.N > 0 {
			add("If each chunk holds one tensor of the size asked for, %s are unused tails of chunks that are larger than that.", event.FormatBytes(r.OversizedTail.N))
		}
	case LeakManyEqualChunks:
		add("Look for what keeps tensors of %s alive: a list they are appended to, a loop that is traced or unrolled, losses kept with their graph. A larger limit only delays the failure.", event.FormatBytes(r.DominantSize.N))
	case RequestExceedsDevice:
		r.smaller(add)
		add("No allocator setting helps: shrink the batch or the model's largest tensor, or split it over devices.")
	case NotMemory:
		add("Check the sizes that lead to this tensor: an uninitialised or overflowing dimension, a file read with the wrong type.")
	case FragmentedPoolOrCached:
		add("Have the pool give back what it caches before the large request, and check (nvidia-smi) what other processes hold; the text cannot tell the two apart.")
	case UndeterminedNoState:
		if !r.NotFailure && !r.DriverFree.Known {
			add("Look for the allocator's dump: TensorFlow prints it to standard error just before this error, from \"ran out of memory trying to allocate\" to a row of * and _. A log of standard output alone, or a notebook's cell, lacks it.")
		}
	case UndeterminedNoRequest:
		add("Give the log of the same run after the map (tideline explain MAP LOG): it has the request and the limit, and the two together decide.")
	default:
		if r.FromMap {
			return out
		}
		if r.Truncated {
			add("Look for the whole text: the lines from \"ran out of memory trying to allocate\" to the row of * and _ decide.")
		}
	}
	return out
}

// dataSets are well known by their number of elements.
var dataSets = []struct {
	elements int64
	name     string
}{
	{10000, "the test sets of MNIST and CIFAR"},
	{50000, "the training sets of CIFAR"},
	{60000, "the training set of MNIST"},
}

// wholeDataSet notes a batch of images that is a whole data set. A matrix may
// have as many rows for another reason, a vocabulary for one.
func (r *Reading) wholeDataSet(add func(string, ...any)) {
	if len(r.Shape) != 4 {
		return
	}
	for _, d := range dataSets {
		if r.Shape[0] == d.elements {
			add("The first dimension, %d, is the number of elements of %s. If a whole data set goes through the model at once, feed it in batches.", d.elements, d.name)
		}
	}
}

func (r *Reading) nextFull(add func(string, ...any)) {
	if !r.Recorded {
		r.smaller(add)
	} else {
		add("Less must live at once: a smaller batch, less kept for the backward pass, lower precision, or a device with more memory.")
	}
	if m := r.Shortfall(); m.Known && m.N > 0 {
		if a := r.startAdvice(); a != "" && r.Decision.TinyLimit {
			add("%s", a)
		} else if r.Decision.TinyLimit {
			add("The limit (%s) is small for a device: if it was set, or if another program held the card at the start, %s more would have let this request pass only with everything packed tightly.", event.FormatBytes(r.Limit.N), event.FormatBytes(m.N))
		} else {
			r.lacking(add, m.N)
		}
	}
	r.tail(add)
	if r.DominantCount.Known && r.DominantCount.N == 1 {
		if share, _ := r.DominantShare(); share > 0.5 {
			add("One chunk of %s is %.1f %% of everything in use: begin there.", event.FormatBytes(r.DominantSize.N), 100*share)
		}
	}
}

// tail names the largest unused tail where the tails hold what is missing.
func (r *Reading) tail(add func(string, ...any)) {
	if !r.TailsHoldIt() {
		return
	}
	var worst event.Chunk
	for i := range r.Map {
		for _, c := range r.Map[i].Chunks {
			if c.InUse && c.Size-c.Requested > worst.Size-worst.Requested {
				worst = c
			}
		}
	}
	s := ""
	if worst.Size > worst.Requested { // a log does not tell
		s = fmt.Sprintf(" The largest is %s, of a chunk of %s for a tensor of %s.",
			event.FormatBytes(worst.Size-worst.Requested), event.FormatBytes(worst.Size), event.FormatBytes(worst.Requested))
	}
	add("Or make the tails smaller: tensors of equal sizes, or a little smaller or larger ones, waste less.%s", s)
}

// lacking says how much must go, and whether the device could add it.
func (r *Reading) lacking(add func(string, ...any), bytes int64) {
	n := event.FormatBytes(bytes)
	switch {
	case !r.Obtainable.Known || !r.Limit.Known || r.HostPinned:
		add("At least %s must go, or be added to the limit if the device has it.", n)
	case r.Obtainable.N < r.Limit.N+bytes:
		add("At least %s must go: the device has no more to give than this limit.", n)
	default:
		add("At least %s must go, or be added to the limit: the device would give up to %s.", n, event.FormatBytes(r.Obtainable.N))
	}
}

func (r *Reading) nextFragmented(add func(string, ...any)) {
	if r.ByOp == "_EagerConst" {
		add("The op _EagerConst is a host array being copied to the device whole. Keep it on the host, or slice it before the copy.")
	}
	r.smaller(add)
	if r.ByOpKnown && strings.HasPrefix(r.Allocator, "GPU_") { // a version that has it
		add("The stream-ordered allocator (TF_GPU_ALLOCATOR=cuda_malloc_async, CUDA 11.2 or newer) maps memory in pages and has no such holes.")
	}
	if r.Growth == bfclog.Yes && len(r.RegionSizes) > 1 {
		add("The pool has grown into %d regions, and free memory of two regions never joins. Without memory growth it would be one.", len(r.RegionSizes))
	}
}

func (r *Reading) nextLimit(add func(string, ...any)) {
	if a := r.startAdvice(); a != "" {
		add("%s", a)
		return
	}
	if r.LikelyCause == othersBefore {
		add("See what holds the card before the program starts (nvidia-smi) and end it; if a memory limit is configured, raise it.")
		return
	}
	need := ""
	if r.InUse.Known && r.Rounded.Known {
		need = fmt.Sprintf(" to at least %s (what is in use and this request; later ones may need more)", event.FormatBytes(r.InUse.N+r.Rounded.N))
	}
	if r.Obtainable.Known {
		add("Raise the memory limit%s: the device would give up to %s.", need, event.FormatBytes(r.Obtainable.N))
		return
	}
	add("Raise the memory limit%s, if the device has that much.", need)
}

// smaller says which first dimension would have fitted the largest hole: true
// of this tensor alone, so it is a hint at the batch size, not a promise.
func (r *Reading) smaller(add func(string, ...any)) {
	if len(r.Shape) < 2 || r.Shape[0] < 2 || !r.Requested.Known || !r.Exact {
		return
	}
	row := r.Requested.N / r.Shape[0]
	if row <= 0 || !r.LargestFree.Known || r.Rounded.N <= r.LargestFree.N {
		return
	}
	if n := r.LargestFree.N / row; n > 0 {
		add("This tensor would fit the largest hole with a first dimension of %d instead of %d; if that is the batch, the rest shrinks as well.", n, r.Shape[0])
	}
}
