package analysis

import (
	"strings"

	"tideline/shared/ingest/bfclog"
)

// variant words which generation of the text this is and what marks it.
func variant(d *bfclog.Dump) string {
	var w []string
	add := func(cond bool, s string) {
		if cond {
			w = append(w, s)
		}
	}
	add(d.Map, "memory map (TF_BFC_MEMORY_DUMP)")
	add(d.Map && d.Request.Told, "with the request of a log")
	add(d.Async, "stream-ordered allocator")
	add(d.HostPinned(), "host allocator")
	add(len(d.Bins) > 0 && d.FreeOnly, "bins count free chunks only")
	add(d.FreeInPool.Known || d.Growth != bfclog.Unknown, "memory summary line and sizes as text (2025 on)")
	add(len(d.Regions) > 0 && d.RegionLines, "regions, chunks in address order")
	add(len(d.Regions) > 0 && !d.RegionLines && !d.Map, "chunk list without region lines")
	add(d.Request.HasOp, "op named in the request line")
	add(!d.Begun() && d.HasBar, "usage bar only, no dump")
	add(!d.Begun() && !d.HasBar && !d.Async, "no allocator state")
	add(d.Begun() && len(d.Bins) == 0 && len(d.Regions) == 0 && !d.Async, "tail of a dump")
	add(d.HasBar && d.Bar == "" && !d.Empty, "empty usage bar")
	add(len(d.Gaps) > 0, "lines left out")
	add(len(w) == 0 && len(d.Bins) > 0, "bin lines")
	add(len(w) == 0, "a part of a dump")
	return strings.Join(w, "; ")
}
