package analysis

import (
	"tideline/shared/ingest/bfclog"
)

// Values lists everything the reading holds under stable names, in a fixed
// order. A name whose value the input does not tell is there with Null.
func (r *Reading) Values() Values {
	var v Values
	v.text("format_variant", r.FormatVariant)
	v.text("allocator", r.Allocator)
	r.requestValues(&v)
	r.poolValues(&v)
	r.chunkValues(&v)
	r.holeValues(&v)
	v.ints("driver_refusals", r.Refusals)
	v.ints("host_pinned_refusals", r.Pinned)
	v.ints("listed_region_sizes", r.RegionSizes)
	v.amount("region_count", r.Regions)
	r.barValues(&v)
	if r.Growth == bfclog.Unknown {
		v.null("memory_growth")
	} else {
		v.boolean("memory_growth", r.Growth == bfclog.Yes)
	}
	v.amount("device_total_bytes", r.DeviceTotal)
	v.amount("driver_free_bytes", r.DriverFree)
	v.text("card", r.Start.Card)
	v.text("start_total_text", r.Start.Total.Text)
	v.text("start_free_text", r.Start.Free.Text)
	v.boolean("truncated", r.Truncated)
	v.texts("missing", r.Missing)
	v.texts("other_faces", r.Faces)
	v.text("verdict", string(r.Verdict))
	v.text("kind", r.Decision.Kind.String())
	first := ""
	if len(r.Findings) > 0 {
		first = r.Findings[0]
	}
	v.text("secondary", first)
	v.texts("findings", r.Findings)
	v.text("likely_cause", r.LikelyCause)
	v.texts("certain", r.Certain)
	v.texts("assumed", r.Assumed)
	return v
}

func (r *Reading) requestValues(v *Values) {
	v.text("requested_text", r.RequestedText)
	v.amount("requested_bytes", r.Requested)
	if r.Requested.Known {
		v.boolean("requested_bytes_exact", r.Exact)
	} else {
		v.null("requested_bytes_exact")
	}
	v.text("requested_bytes_basis", r.Basis)
	v.amount("requested_rounded_bytes", r.Rounded)
	v.text("requested_by_op", r.ByOp)
	v.ints("tensor_shape", r.Shape)
	v.text("dtype", r.DType)
	v.amount("dtype_bytes", r.ElementSize)
	v.text("device", r.Device)
	v.text("op", r.Op)
	v.text("node", r.Node)
}

func (r *Reading) poolValues(v *Values) {
	v.amount("limit_bytes", r.Limit)
	v.text("limit_text", r.LimitText)
	v.amount("pool_bytes", r.Pool)
	v.amount("available_bytes", r.Available)
	v.amount("next_region_bytes", r.NextRegion)
	v.amount("in_use_bytes", r.InUse)
	v.text("in_use_text", r.InUseText)
	v.amount("peak_in_use_bytes", r.Peak)
	v.text("peak_in_use_text", r.PeakText)
	v.amount("num_allocs", r.Allocs)
	v.amount("largest_alloc_bytes", r.LargestAlloc)
}

func (r *Reading) chunkValues(v *Values) {
	v.amount("in_use_chunk_count", r.UsedChunks)
	v.amount("free_chunk_count", r.FreeChunks)
	v.boolean("chunk_list_complete", r.ListComplete)
	v.amount("listed_in_use_chunk_count", r.ListedUsed)
	v.amount("listed_in_use_bytes", r.ListedUsedBytes)
	v.amount("listed_free_chunk_count", r.ListedFree)
	v.amount("listed_free_bytes", r.ListedFreeBytes)
	v.amount("sum_of_listed_chunks", r.SummaryBytes)
	v.amount("bin_total_chunks", r.BinChunks)
	v.amount("bin_in_use_chunks", r.BinUsed)
	v.amount("free_chunk_count_from_bins", r.BinFree)
	v.amount("largest_single_in_use_bytes", r.LargestUsed)
	v.amount("dominant_chunk_size", r.DominantSize)
	v.amount("dominant_chunk_count", r.DominantCount)
	v.amount("dominant_chunk_bytes", r.DominantBytes())
	if share, ok := r.DominantShare(); ok {
		v.float("dominant_share", round6(share))
	} else {
		v.null("dominant_share")
	}
	v.amount("internal_waste_bytes", r.Waste)
	v.text("internal_waste_text", r.WasteText)
	v.amount("oversized_tail_bytes_if_one_tensor_each", r.OversizedTail)
}

func (r *Reading) holeValues(v *Values) {
	v.amount("free_total_bytes", r.Free)
	v.integerIf("free_in_pool_bytes", r.Free.N, r.Free.Known && !r.FreeIsOfLimit)
	v.amount("largest_free_chunk_bytes", r.LargestFree)
	v.text("largest_free_chunk_text", r.LargestFreeText)
	v.integerIf("largest_free_chunk_address", int64(r.LargestFreeAt), r.LargestFreeAt != 0 && int64(r.LargestFreeAt) > 0)
	if r.HasFragmentation {
		v.float("fragmentation", round6(r.Fragmentation))
	} else {
		v.null("fragmentation")
	}
	v.amount("room_if_perfectly_compact_bytes", r.Packed())
	v.amount("shortfall_if_perfectly_compact_bytes", r.Shortfall())
	if r.LargestFreeFieldZero {
		v.boolean("stats_largest_free_block_is_zero_by_design", true)
	} else {
		v.null("stats_largest_free_block_is_zero_by_design")
	}
}

func (r *Reading) barValues(v *Values) {
	if !r.HasBar {
		v.null("usage_bar")
	} else {
		*v = append(*v, Value{Name: "usage_bar", Type: TextValue, Text: r.Bar})
	}
	free, run := BarCells(r.Bar)
	v.integerIf("free_cells_in_bar", int64(free), r.Bar != "")
	v.integerIf("longest_free_run_in_bar_percent", int64(run), r.Bar != "")
}
