package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/cause"
	"tideline/shared/ingest/bfclog"
)

// moment is the made-up distance between what a log tells of one failure. A
// dump shows one instant; the log does not say when its chunks were taken.
const moment = int64(1e6) // nanoseconds

// ReadLog reads an allocator's out-of-memory text and tells it as a timeline:
// one allocator per name and log source, its regions, an allocation for every
// chunk in use that the text lists, and the failure with its chunk map. A log
// with a history of its own, RMM's or TensorFlow's memory log, is told as it
// went, without readings. The name is only used in errors.
func ReadLog(name string, r io.Reader, strs *event.Strings, sink event.Sink) ([]*analysis.Reading, error) {
	in := bufio.NewReaderSize(r, historyHead)
	if tell := historyOf(in); tell != nil {
		if err := tell(in, strs, sink); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return nil, nil
	}
	log, err := bfclog.Read(in)
	if errors.Is(err, bfclog.ErrNothing) {
		return nil, &UnsupportedError{Name: name, Kind: Log, Detail: err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return tellLog(log, strs, sink), nil
}

// tellLog tells the dumps of a log one after the other.
func tellLog(log *bfclog.Log, strs *event.Strings, sink event.Sink) []*analysis.Reading {
	readings := make([]*analysis.Reading, len(log.Dumps))
	for i, d := range log.Dumps {
		readings[i] = analysis.FromDump(d)
	}
	w := logWriter{strs: strs, sink: sink}
	w.facts(log, readings)
	for i, d := range log.Dumps {
		w.failure(d, readings[i])
	}
	w.end(log)
	return readings
}

// logWriter emits the timeline of a log.
type logWriter struct {
	strs  *event.Strings
	sink  event.Sink
	spots []spot // one per allocator
	now   int64
}

// spot is what an allocator holds so far, to tell the next dump of the same
// allocator as a change.
type spot struct {
	name, source string
	regions      []event.Region
}

func (w *logWriter) emit(e event.Event) {
	e.Time = w.now
	e.Step = event.NoStep
	w.sink.Emit(&e)
}

// facts come first: every allocator of the log gets a device of its own,
// because a log does not tell which of them share one.
func (w *logWriter) facts(log *bfclog.Log, readings []*analysis.Reading) {
	for i, d := range log.Dumps {
		if w.spotOf(d) >= 0 {
			continue
		}
		id := len(w.spots)
		w.spots = append(w.spots, spot{name: d.Allocator, source: d.Source})
		r := readings[i]
		w.emit(event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(id), Text: w.strs.ID(deviceFields(d, r).Encode())})
		w.emit(event.Event{
			Kind: event.AllocatorFacts, Device: event.DeviceID(id), Allocator: event.AllocatorID(id),
			Size: r.Limit.N, Text: w.strs.ID(allocatorFields(d, r).Encode()),
		})
	}
	if len(log.Dumps) > 0 && log.Dumps[0].Map {
		w.note(0, 0, "This timeline was read from a memory map. A map shows an instant: times are not in it and are made up here.")
	} else {
		w.note(0, 0, "This timeline was read from a log. A log shows instants: times and the order of allocations are not in it and are made up here.")
	}
	for _, n := range log.Notices {
		w.note(0, event.Warning, fmt.Sprintf("%s: %d × a request of %s failed at first (line %d); not an error by itself.",
			orUnknown(n.Allocator), n.Count, n.Requested.Text, n.Line))
	}
}

// maxSpots keeps ids small for a log that makes up names.
const maxSpots = 256

// spotOf finds the allocator of a dump, or -1. Beyond maxSpots all share the last.
func (w *logWriter) spotOf(d *bfclog.Dump) int {
	for i := range w.spots {
		if w.spots[i].name == d.Allocator && w.spots[i].source == d.Source {
			return i
		}
	}
	if len(w.spots) >= maxSpots {
		return maxSpots - 1
	}
	return -1
}

func deviceFields(d *bfclog.Dump, r *analysis.Reading) event.Fields {
	f := event.Fields{{Key: "name", Value: deviceName(d, r)}, {Key: "kind", Value: "gpu"}}
	if r.HostPinned || strings.Contains(d.Allocator, "cpu") {
		f.Set("kind", "cpu")
	}
	if r.DeviceTotal.Known {
		f.Set("total", strconv.FormatInt(r.DeviceTotal.N, 10))
	}
	if r.DriverFree.Known {
		f.Set("free", strconv.FormatInt(r.DriverFree.N, 10))
	}
	if r.Limit.Known {
		f.Set("limit", strconv.FormatInt(r.Limit.N, 10))
	}
	return f
}

// deviceName prefers what an error said, then the number in the allocator's name.
func deviceName(d *bfclog.Dump, r *analysis.Reading) string {
	name := r.Device
	if name == "" {
		name = "device of " + orUnknown(d.Allocator)
		if n, ok := strings.CutPrefix(d.Allocator, "GPU_"); ok {
			name = "/GPU:" + strings.TrimSuffix(n, "_bfc")
		}
	}
	if d.Source != "" {
		name += " (" + d.Source + ")"
	}
	return name
}

func allocatorFields(d *bfclog.Dump, r *analysis.Reading) event.Fields {
	f := event.Fields{{Key: "name", Value: orUnknown(d.Allocator)}, {Key: "kind", Value: "bfc"}, {Key: analysis.FormatKey, Value: r.FormatVariant}}
	switch r.Growth {
	case bfclog.Yes:
		f.Set("growth", "true")
	case bfclog.No:
		f.Set("growth", "false")
	default:
	}
	if !r.ListComplete {
		// The chunks told are not all there are: totals come as samples.
		f.Set(analysis.PartialKey, "true")
	}
	return f
}

func orUnknown(name string) string {
	if name == "" {
		return "an allocator that the log does not name"
	}
	return name
}

func (w *logWriter) note(dev int, flags event.Flags, text string) {
	w.emit(event.Event{Kind: event.Log, Device: event.DeviceID(dev), Flags: flags, Text: w.strs.ID(text)})
}

// failure tells one dump.
func (w *logWriter) failure(d *bfclog.Dump, r *analysis.Reading) {
	id := max(0, w.spotOf(d))
	dev, al := event.DeviceID(id), event.AllocatorID(id)
	m := soundMap(d)
	w.become(id, m, actionsOf(d))
	w.now += moment / 2
	for _, n := range r.Refusals {
		w.emit(event.Event{Kind: event.RegionRefused, Device: dev, Allocator: al, Size: n})
	}
	w.samples(dev, r)
	w.emit(event.Event{
		Kind: event.OutOfMemory, Device: dev, Allocator: al, Size: r.Rounded.Or(r.Requested).N, Requested: r.Requested.N,
		Op: w.strs.ID(opOf(r)), Tensor: w.strs.ID(tensorOf(r)), Cause: uint8(r.Decision.Cause),
		Text: w.strs.ID(m.Encode()), Flags: retryable(r),
	})
	w.emit(event.Event{Kind: event.Annotation, Device: dev, Text: w.strs.ID(analysis.VerdictNote + string(r.Verdict))})
	if d.Truncated {
		what := "log"
		if d.Map {
			what = "memory map"
		}
		w.note(id, event.Warning, "The "+what+" is cut: it lacks "+strings.Join(d.Missing, ", ")+".")
	}
	w.unlisted(id, r, m)
	w.now += moment / 2
}

func retryable(r *analysis.Reading) event.Flags {
	if r.NotFailure {
		return event.Retryable
	}
	return 0
}

// opOf names who asked: the allocator's own word, else the failing op's.
func opOf(r *analysis.Reading) string {
	for _, s := range []string{r.ByOp, r.Node, r.Op} {
		if s != "" {
			return s
		}
	}
	return ""
}

func tensorOf(r *analysis.Reading) string {
	if r.Shape == nil {
		return ""
	}
	dims := make([]string, len(r.Shape))
	for i, n := range r.Shape {
		dims[i] = strconv.FormatInt(n, 10)
	}
	return r.DType + "[" + strings.Join(dims, ",") + "]"
}

// samples carry the allocator's own totals, which a cut chunk list does not
// add up to.
func (w *logWriter) samples(dev event.DeviceID, r *analysis.Reading) {
	for _, s := range []struct {
		name string
		v    cause.Amount
	}{
		{analysis.ReportedInUse, r.InUse},
		{analysis.ReportedPeak, r.Peak},
		{analysis.ReportedPool, r.Pool},
		{analysis.ReportedFree, r.Free},
		{analysis.ReportedLargestFree, r.LargestFree},
	} {
		if s.v.Known {
			w.emit(event.Event{Kind: event.Sample, Device: dev, Op: w.strs.ID(s.name), Size: s.v.N})
		}
	}
}

// unlisted says how much of the pool the list does not show.
func (w *logWriter) unlisted(id int, r *analysis.Reading, m event.ChunkMap) {
	_, used, _, _ := m.Totals()
	if r.InUse.Known && r.InUse.N > used {
		w.emit(event.Event{
			Kind: event.Annotation, Device: event.DeviceID(id),
			Text: w.strs.ID(fmt.Sprintf("%s in use are not in the chunk list; where they lie is not known, so the map shows nothing there.",
				event.FormatBytes(r.InUse.N-used))),
		})
	}
}

// soundMap is the part of the list that can be true: chunks that ascend
// without overlapping. Where chunks are missing the region is told in pieces,
// because nothing is known about what lies between.
func soundMap(d *bfclog.Dump) event.ChunkMap {
	var m event.ChunkMap
	for i := range d.Regions {
		m = append(m, pieces(&d.Regions[i])...)
	}
	sort.SliceStable(m, func(i, j int) bool { return m[i].Address < m[j].Address })
	return slices.Clip(dropOverlaps(m))
}

func dropOverlaps(m event.ChunkMap) event.ChunkMap {
	keep := m[:0]
	var end uint64
	for _, r := range m {
		if len(keep) > 0 && r.Address < end {
			continue
		}
		keep = append(keep, r)
		end = r.Address + uint64(r.Size)
	}
	return keep
}

// pieces are the runs of touching chunks that the text lists of a region.
func pieces(in *bfclog.Region) []event.Region {
	var out []event.Region
	var at uint64
	for _, c := range in.Chunks {
		top := c.Address + uint64(c.Size)
		if len(out) > 0 && c.Address < at {
			continue
		}
		if len(out) == 0 || c.Address != at || out[len(out)-1].Size > maxRegion-c.Size {
			out = append(out, event.Region{Address: c.Address})
		}
		r := &out[len(out)-1]
		r.Chunks = append(r.Chunks, event.Chunk{Address: c.Address, Size: c.Size, Requested: c.Asked(), InUse: c.InUse})
		r.Size += c.Size
		at = top
	}
	return out
}

// maxRegion keeps sums of sizes in 63 bits.
const maxRegion = int64(1) << 60

// become tells the difference from what the allocator held in the dump before.
func (w *logWriter) become(id int, m event.ChunkMap, known actions) {
	s := &w.spots[id]
	dev, al := event.DeviceID(id), event.AllocatorID(id)
	next := map[uint64]*event.Region{}
	for i := range m {
		next[m[i].Address] = &m[i]
	}
	kept := map[uint64]int64{} // blocks in use before and after
	for i := range s.regions {
		old := &s.regions[i]
		stays := next[old.Address]
		for _, c := range old.Chunks {
			if !c.InUse {
				continue
			}
			if stays != nil && stays.Size == old.Size && usesSame(stays, c) {
				kept[c.Address] = c.Size
				continue
			}
			w.emit(event.Event{Kind: event.Free, Device: dev, Allocator: al, Address: c.Address, Size: c.Size})
		}
		if stays == nil || stays.Size != old.Size {
			w.emit(event.Event{Kind: event.RegionRemove, Device: dev, Allocator: al, Address: old.Address, Size: old.Size})
			continue
		}
		delete(next, old.Address)
	}
	var taken []event.Chunk
	take := func() {
		for _, c := range taken {
			w.emit(event.Event{
				Kind: event.Alloc, Device: dev, Allocator: al, Address: c.Address, Size: c.Size, Requested: c.Requested,
				Op: w.strs.ID(known[c.Address].op),
			})
		}
		taken = taken[:0]
	}
	late := known.counted() // the order is known, across regions
	for i := range m {
		r := &m[i]
		if next[r.Address] != nil {
			w.emit(event.Event{Kind: event.RegionAdd, Device: dev, Allocator: al, Address: r.Address, Size: r.Size, Requested: r.Size})
		}
		for _, c := range r.Chunks {
			if c.InUse && kept[c.Address] != c.Size {
				taken = append(taken, c)
			}
		}
		if !late {
			take()
		}
	}
	known.sort(taken)
	take()
	s.regions = m
}

// usesSame says whether the region has that very block in use.
func usesSame(r *event.Region, c event.Chunk) bool {
	i := sort.Search(len(r.Chunks), func(i int) bool { return r.Chunks[i].Address >= c.Address })
	return i < len(r.Chunks) && r.Chunks[i].Address == c.Address && r.Chunks[i].Size == c.Size && r.Chunks[i].InUse
}

func (w *logWriter) end(log *bfclog.Log) {
	if log.Cut != "" {
		w.emit(event.Event{Kind: event.Lost, Text: w.strs.ID(log.Cut)})
	}
	w.emit(event.Event{Kind: event.End, Cause: uint8(event.EndOutOfMemory), Text: w.strs.ID("end of the log")})
}
