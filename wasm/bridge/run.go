package bridge

import "tideline/protocol/event"

// log is the run itself: settings, remarks, placements, damage.
func (s *Session) log(a *answer, r *request) {
	tl := r.sl.tl
	a.note(plural(tl.Events(), "event") + " · " + size(tl.Bytes()) + " in this tab")
	end := tl.End()
	switch {
	case r.sl.warn != "":
		a.verdict("Not everything could be read", false, r.sl.warn)
	case end.Ended && end.Text != "":
		a.verdict(title(end.Reason.String()), end.Reason == event.EndDone, end.Text)
	}
	if n := tl.Skipped(); n > 0 {
		a.key("text").text(plural(n, "event") + " contradicted the rest and were left out.")
	}
	a.key("tables").list()
	a.table("Settings", 0, []column{{"Field", kText}, {"Value", kText}}, func() {
		for _, f := range tl.Settings() {
			a.row().text(f.Key).text(f.Value).endRow(rowEnd{})
		}
	})
	if notes := tl.Notes(); len(notes) > 0 && r.sl.origin == "log" {
		a.table("Failures in the text", 0, []column{{"Where", kText}}, func() {
			for _, n := range notes {
				a.row().text(tl.Text(n.Text)).endRow(rowEnd{goes: true, t: n.Time})
			}
		})
	} else if len(notes) > 0 {
		more := max(0, len(notes)-maxRows)
		a.table("Log", more, []column{{"Time", kTime}, {"Line", kText}}, func() {
			for _, n := range notes[:len(notes)-more] {
				a.row().num(n.Time).text(tl.Text(n.Text)).endRow(rowEnd{goes: true, t: n.Time})
			}
		})
	}
	for _, d := range tl.Devices() {
		a.table("Device "+short(d.Name), 0, []column{{"Fact", kText}, {"Value", kText}}, func() {
			for _, f := range d.Facts {
				a.row().text(f.Key).text(f.Value).endRow(rowEnd{})
			}
		})
	}
	if places := tl.Places(); len(places) > 0 {
		more := max(0, len(places)-maxRows)
		a.table("Placement", more, []column{{"Op", kText}, {"Device", kText}, {"Why", kText}}, func() {
			for _, p := range places[:len(places)-more] {
				a.row().text(tl.Text(p.Op)).text(short(tl.Device(p.Device).Name)).text(tl.Text(p.Reason)).endRow(rowEnd{})
			}
		})
	}
	a.endList()
}
