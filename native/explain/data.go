package explain

import (
	"io"

	"tideline/shared/analysis"
	common "tideline/shared/analysis/reading"
	"tideline/shared/blame"
	"tideline/shared/ingest"
	"tideline/shared/remedy"
)

// explainData explains a file that is no text: a PyTorch snapshot, a profile,
// a trace.
func explainData(name string, r io.Reader, w io.Writer, o Options) error {
	d, err := ingest.ReadData(name, r, ingest.Limits{})
	if err != nil {
		return err
	}
	if o.Profiler && d.Space != nil {
		return profilerText(w, d.Space.ProfilerEvents())
	}
	if o.zipped {
		d.Reading.Facts.Set("gzip", common.Bool(true))
	}
	if d.Snapshot != nil && !o.NoReruns {
		out := remedy.Snapshot(d.Snapshot, o.replayOptions())
		out.Attach(d.Reading)
	}
	if d.Dump != nil {
		return explainMap(name, d, w, o)
	}
	blame.Data(d, blame.Options{Stop: o.Stop})
	rep := report{name: name, kind: d.Reading.Kind, readings: []*common.Reading{d.Reading}, cut: d.Cut}
	if o.HTML {
		rep.draw(d)
	}
	return rep.write(w, o)
}

// explainMap explains a memory map as the dump in a log that it amounts to.
func explainMap(name string, d *ingest.Data, w io.Writer, o Options) error {
	f := failure{Reading: analysis.FromDump(d.Dump)}
	if !o.NoReruns {
		out := remedy.BFC(d.Dump, f.Reading, o.replayOptions())
		f.replays = new(common.Reading)
		out.Attach(f.replays)
	}
	rep := report{name: name, kind: d.Reading.Kind, failures: []failure{f}, cut: d.Cut}
	if o.HTML && len(d.Map.History) > 0 {
		rep.draw(d)
	}
	return rep.write(w, o)
}
