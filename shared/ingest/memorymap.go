package ingest

import (
	"bytes"
	"io"
	"sort"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/foreign"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/memorydump"
)

// readMap reads a memory map, and the log that may stand behind it.
func readMap(r io.Reader, l Limits) (*Data, error) {
	raw, err := all(r, l)
	if err != nil && len(raw) == 0 {
		return nil, err
	}
	m, merr := memorydump.Decode(raw)
	if m == nil {
		return nil, merr //nolint:wrapcheck // the caller names the file
	}
	if err == nil {
		err = merr
	}
	d := m.Dump(err != nil)
	switch {
	case len(m.Rest) == 0:
	case memorydump.Is(m.Rest[:min(len(m.Rest), HeadBytes)]):
		d.Notes = append(d.Notes, "Another memory map stands behind this one; explain it alone to see it.")
		m.Rest = nil
	default:
		log, lerr := bfclog.Read(bytes.NewReader(m.Rest))
		if lerr != nil {
			log = new(bfclog.Log) // nothing in it is of use
		}
		memorydump.Join(d, log)
		m.Rest = nil
	}
	return cut(&Data{Reading: foreign.BFC(analysis.FromDump(d)), Map: m, Dump: d}, err), nil
}

// lane is the series that the history of a build with memory debugging is.
const lane = "in use, by the count of actions"

// maxPause bounds what a gap in the history takes of the time axis.
const maxPause = 1000

// tellMap tells a memory map: its history, if it has one, with a microsecond for
// each action, and then the failure as that of a log.
func tellMap(m *memorydump.Map, d *bfclog.Dump, strs *event.Strings, sink event.Sink) {
	r := analysis.FromDump(d)
	log := &bfclog.Log{Dumps: []*bfclog.Dump{d}}
	w := logWriter{strs: strs, sink: sink}
	w.facts(log, []*analysis.Reading{r})
	for i, p := range m.History {
		if i > 0 {
			w.now += int64(min(p.Action-m.History[i-1].Action, maxPause)) * 1000 //nolint:gosec // small
		}
		w.emit(event.Event{Kind: event.Sample, Op: strs.ID(lane), Size: p.InUse})
	}
	w.failure(d, r)
	w.end(log)
}

// action is what a build with memory debugging notes of a chunk.
type action struct {
	op    string
	count uint64
}

// actions are those of the chunks in use, by address.
type actions map[uint64]action

// actionsOf is nil where nothing is noted.
func actionsOf(d *bfclog.Dump) actions {
	var out actions
	for i := range d.Regions {
		for j := range d.Regions[i].Chunks {
			c := &d.Regions[i].Chunks[j]
			if !c.InUse || c.Op == "" && c.Action == 0 {
				continue
			}
			if out == nil {
				out = actions{}
			}
			out[c.Address] = action{c.Op, c.Action}
		}
	}
	return out
}

// counted says whether it is known when blocks were taken.
func (a actions) counted() bool {
	for _, x := range a {
		if x.count > 0 {
			return true
		}
	}
	return false
}

// sort puts blocks into the order in which they were taken; those of which that
// is not known stay in front, by address.
func (a actions) sort(blocks []event.Chunk) {
	sort.SliceStable(blocks, func(i, j int) bool { return a[blocks[i].Address].count < a[blocks[j].Address].count })
}
