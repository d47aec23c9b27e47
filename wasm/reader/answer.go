package reader

import (
	"slices"

	"tideline/shared/analysis/reading"
	"tideline/shared/ingest"
)

// origin is where the viewer is to say that a timeline comes from. A text tells
// instants, whose distances on the time axis are made up: a "log".
func origin(in *ingest.Input) string {
	if in.Moments() {
		return "log"
	}
	return "file"
}

// appendKnown says what a file is.
func appendKnown(b []byte, in *ingest.Input) []byte {
	f := facts(in)
	return reading.Object(f).AppendJSON(b)
}

func facts(in *ingest.Input) reading.Facts {
	var f reading.Facts
	f.Text("kind", in.Kind)
	f.Text("origin", origin(in))
	f.Bool("own", in.Kind == ingest.KindTimeline)
	f.Bool("gzip", in.Zipped)
	return f
}

// appendTold says what a file means, how many events its timeline has, and of one
// of ours that keeps readings what input it was made of. From end on the timeline
// is to be replaced by what is drained with the answer; where end is negative,
// that follows on what came before. Each reading comes in the form of the JSON
// report, and beside it what only people read: its name, the verdict's phrase, the
// table.
func appendTold(b []byte, in *ingest.Input, events uint64, end int64) []byte {
	f := facts(in)
	f.Int("events", int64(events))
	f.Text("cut", in.Cut)
	f.IntIf("end", end, end >= 0)
	if s := in.Saved; s != nil {
		f.Text("input_kind", s.Kind)
		f.Text("input_cut", s.Cut)
		f.IntIf("left_out", s.LeftOut, s.LeftOut > 0)
	}
	b = reading.Object(f).AppendJSON(b)
	b = append(b[:len(b)-1], `,"readings":[`...)
	for i, r := range in.Readings {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendReading(b, r)
	}
	return append(b, "]}"...)
}

func appendReading(b []byte, r *reading.Reading) []byte {
	var f reading.Facts
	f.Text("name", r.Name)
	f.Text("kind", r.Kind)
	f.Int("line", int64(r.Line))
	f.Text("phrase", r.Heading())
	var rows []reading.Value
	for _, row := range slices.Concat(r.Rows, r.Added()) {
		if row.Value != "" {
			rows = append(rows, reading.List(reading.Text(row.Label), reading.Text(row.Value)))
		}
	}
	f.Set("rows", reading.List(rows...))
	b = reading.Object(f).AppendJSON(b)
	b = append(b[:len(b)-1], `,"reading":`...)
	return append(r.AppendJSON(b), '}')
}
