package draw

import (
	"strings"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// Row is one row of an op, sample, transfer or input lane.
type Row struct {
	Y, H   int // pixels, from the picture's top
	Track  int // index into Tracks, or -1
	Series int // index into SeriesList, or -1
	Title  string
}

// Rows are the rows of an op, sample, transfer or input lane, with their
// titles.
func Rows(tl *store.Timeline, l *Lane) []Row {
	rows := appendRows(nil, tl, l)
	for i := range rows {
		rows[i].Title = title(tl, &rows[i])
	}
	return rows
}

func title(tl *store.Timeline, r *Row) string {
	dev := func(d event.DeviceID) string { // without what all of them share
		name := tl.Device(d).Name
		if i := strings.LastIndex(name, "/device:"); i >= 0 {
			name = name[i+len("/device:"):]
		}
		return name
	}
	if r.Series >= 0 {
		s := tl.SeriesList()[r.Series]
		if s.Kind == store.SampleSeries {
			return dev(s.Device) + ": " + tl.Text(s.Name)
		}
		return tl.Text(s.Name) + " queue"
	}
	k := tl.Tracks()[r.Track]
	switch k.Kind {
	case store.OpTrack:
		return dev(k.Device) + streamName(k.Stream)
	case store.TransferTrack:
		return dev(k.Device) + " → " + dev(k.Peer)
	case store.StallTrack:
		return dev(k.Device) + " waits"
	case store.StageTrack:
		return tl.Text(k.Op)
	}
	return "steps"
}

func streamName(s event.StreamID) string {
	switch s {
	case event.StreamCompute:
		return ""
	case event.StreamH2D:
		return " H2D"
	case event.StreamD2H:
		return " D2H"
	case event.StreamD2D:
		return " D2D"
	}
	return " stream"
}

// appendRows appends the rows without titles, sharing the lane's height.
func appendRows(dst []Row, tl *store.Timeline, l *Lane) []Row {
	first := len(dst)
	track := func(kind store.TrackKind, everywhere bool) {
		for i, k := range tl.Tracks() {
			if k.Kind == kind && (everywhere || k.Device == l.Device) {
				dst = append(dst, Row{Track: i, Series: -1})
			}
		}
	}
	numbers := func(kind store.SeriesKind) {
		for i, s := range tl.SeriesList() {
			if s.Kind == kind {
				dst = append(dst, Row{Track: -1, Series: i})
			}
		}
	}
	switch l.Kind {
	case OpLane:
		track(store.OpTrack, false)
	case SampleLane:
		numbers(store.SampleSeries)
	case TransferLane:
		track(store.TransferTrack, true)
	case InputLane:
		track(store.StallTrack, true)
		numbers(store.QueueSeries)
		track(store.StageTrack, true)
	}
	rows := dst[first:]
	for i := range rows {
		y := l.H * i / len(rows)
		rows[i].Y, rows[i].H = l.Y+y, l.H*(i+1)/len(rows)-y
	}
	return dst
}
