package memorydump

import (
	"tideline/shared/ingest/bfclog"
)

// Join completes a map's dump by the failure of a log that is the same: of the
// same allocator, and with the map's figures as far as the log has them. It
// takes over what a map does not tell, and says in the dump's notes what came of
// it.
func Join(d *bfclog.Dump, log *bfclog.Log) {
	same, others, doubt := (*bfclog.Dump)(nil), 0, false
	for _, l := range log.Dumps {
		switch {
		case !matches(d, l):
			others++
		case same == nil:
			same = l
		default:
			doubt = doubt || l.Request.Size.N != same.Request.Size.N
		}
	}
	if same == nil {
		d.Notes = append(d.Notes, "No failure of the text beside the memory map is that of the map: the allocator or its figures differ.")
		return
	}
	take(d, same)
	if doubt {
		d.Notes = append(d.Notes, "Several failures of the text have the figures of the memory map; the first of them is taken for it.")
	}
	if others > 0 {
		d.Notes = append(d.Notes, "The text beside the memory map tells of other failures as well; explain it alone to see them.")
	}
}

// matches says whether a dump of a log was printed in the state of the map.
func matches(d, l *bfclog.Dump) bool {
	if l.Allocator != "" && l.Allocator != d.Allocator || !l.HasStats && !l.HasSummary {
		return false
	}
	told := 0
	for _, x := range []struct{ here, there bfclog.Size }{
		{d.InUse, l.InUse.Or(l.SumTotal)},
		{d.Peak, l.Peak},
		{d.Allocs, l.Allocs},
		{d.LargestAlloc, l.LargestAlloc},
		{d.Pool, l.Pool},
	} {
		if !x.here.Known || !x.there.Known {
			continue
		}
		if x.here.N < x.there.Lo || x.here.N > x.there.Hi {
			return false
		}
		told++
	}
	return told > 0
}

func take(d, l *bfclog.Dump) {
	d.Request, d.Tensor, d.Source = l.Request, l.Tensor, l.Source
	d.Limit, d.PoolLimit, d.Available, d.NextRegion = l.Limit, l.PoolLimit, l.Available, l.NextRegion
	d.Growth, d.Refusals, d.Pinned, d.Collected = l.Growth, l.Refusals, l.Pinned, l.Collected
	d.Bar, d.HasBar = l.Bar, l.HasBar
	d.Faces, d.Usage = l.Faces, l.Usage
	d.DriverFree, d.DeviceTotal = l.DriverFree, l.DeviceTotal
	if l.RegionLines && len(l.Regions) > 0 && l.ListComplete && d.ListComplete {
		d.Regions, d.RegionLines = split(d, l), true
	}
}

// split cuts the map's runs of chunks where the log's regions begin, which may
// touch. It returns the runs as they are where the two do not fit.
func split(d, l *bfclog.Dump) []bfclog.Region {
	var all []bfclog.Chunk
	for i := range d.Regions {
		all = append(all, d.Regions[i].Chunks...)
	}
	out := make([]bfclog.Region, 0, len(l.Regions))
	for i := range l.Regions {
		r := bfclog.Region{Address: l.Regions[i].Address, Complete: true}
		n := len(l.Regions[i].Chunks)
		if n > len(all) || n == 0 || all[0].Address != r.Address {
			return d.Regions
		}
		r.Chunks, all = all[:n:n], all[n:]
		for _, c := range r.Chunks {
			r.Size += c.Size
		}
		if r.Size != l.Regions[i].Size {
			return d.Regions
		}
		out = append(out, r)
	}
	if len(all) > 0 {
		return d.Regions
	}
	return out
}
