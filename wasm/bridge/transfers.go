package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// transfers sums what crossed between devices in the selection or the view.
func (s *Session) transfers(a *answer, r *request) {
	tl := r.sl.tl
	var bytes, nanos, count int64
	type line struct {
		track        *store.Track
		cause        int
		n, size, dur int64
	}
	var list []line
	for _, tr := range tl.Tracks() {
		if tr.Kind != store.TransferTrack {
			continue
		}
		sums := causes(tr, r.t0, r.t1)
		for c := range sums {
			if x := sums[c]; x.count > 0 {
				list = append(list, line{tr, c, x.count, x.bytes, x.nanos})
				bytes, nanos, count = bytes+x.bytes, nanos+x.nanos, count+x.count
			}
		}
	}
	if r.sl.origin == "log" {
		a.key("text").text("A log of a failure tells nothing of transfers.")
		return
	}
	a.note(clock(r.t0) + " – " + clock(r.t1))
	if len(list) == 0 {
		a.key("text").text("Nothing crossed between devices in this part of the timeline.")
		return
	}
	span := r.t1 - r.t0
	a.figures(
		figure{name: "Transfers", value: itoa(count)},
		figure{name: "Bytes", value: size(bytes)},
		figure{name: "Copying", value: clock(nanos), sub: percent(nanos, span) + " of the time shown"},
	)
	th := theme(s.theme)
	a.key("tables").list()
	a.table("By direction and cause", 0, []column{
		{"Cause", kText}, {"From", kText}, {"To", kText}, {"Count", kCount}, {"Bytes", kBytes}, {"Time", kTime}, {"Rate", kRate}, {"Bytes, share", kShare},
	}, func() {
		for _, l := range list {
			rate := int64(0)
			if l.dur > 0 {
				rate = int64(float64(l.size) * 1e9 / float64(l.dur))
			}
			a.row().text(event.TransferCause(l.cause).String()).text(short(tl.Device(l.track.Device).Name)).text(short(tl.Device(l.track.Peer).Name)).
				num(l.n).num(l.size).num(l.dur).num(rate).num(l.size).endRow(rowEnd{color: th.Cause[l.cause].Hex()})
		}
	})
	a.endList()
}

type causeSum struct{ count, bytes, nanos int64 }

// causes sums a track's spans by cause. Times and bytes come from the track's
// sums; the counts of causes that share a track are counted one by one up to
// a bound, and belong to the first cause beyond it.
func causes(tr *store.Track, t0, t1 int64) (out [store.NumClasses]causeSum) {
	busy, value, n := tr.Sum(t0, t1)
	only := -1
	for c := range busy {
		if busy[c] > 0 || value[c] > 0 {
			out[c].bytes, out[c].nanos = value[c], busy[c]
			if only == -1 {
				only = c
			} else {
				only = -2
			}
		}
	}
	if only >= 0 {
		out[only].count = int64(n)
		return out
	}
	for _, i := range tr.Overlapping(nil, t0, t1, 200_000) {
		sp := tr.Span(int(i))
		if sp.Begin >= t0 && int(sp.Class) < len(out) {
			out[sp.Class].count++
		}
	}
	return out
}
