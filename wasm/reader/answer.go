package reader

import (
	"slices"

	"tideline/shared/analysis/reading"
	"tideline/shared/ingest"
)

// origin is where the viewer is to say that a timeline comes from. A text tells
// instants, whose distances on the time axis are made up: a "log".
func origin(in *ingest.Input) string {
	switch {
	case in.Text == nil, in.Text.OverTime():
		return "file"
	default:
		return "log"
	}
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

// appendTold says what a file means, and how many events its timeline has. Each
// reading comes in the form of the JSON report, and beside it what only people
// read: its name, the verdict's phrase, the table.
func appendTold(b []byte, in *ingest.Input, events uint64) []byte {
	f := facts(in)
	f.Int("events", int64(events))
	f.Text("cut", in.Cut)
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
