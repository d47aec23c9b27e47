package explain

import (
	"io"

	common "tideline/shared/analysis/reading"
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
	rep := report{name: name, kind: d.Reading.Kind, readings: []*common.Reading{d.Reading}, cut: d.Cut}
	if o.HTML {
		rep.draw(d)
	}
	return rep.write(w, o)
}
