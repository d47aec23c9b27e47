package remedy

import (
	"fmt"
	"slices"

	"tideline/protocol/event"
)

// manyCalls is from where on a trace without a failure is replayed only under
// the few settings that tell most.
const manyCalls = 300_000

// peaks compares what a trace without a failure takes of the driver.
func (t *caching) peaks() {
	s := t.sequence(withHoles)
	if len(s.calls) == s.begins {
		return
	}
	assumes := ""
	if t.live > 0 {
		assumes = assumed[withHoles]
	}
	base := t.in.Settings
	list := append([]candidate{{
		setting: asRecorded, kind: "torch", own: true, telling: true,
		make: func(capacity int64) (machine, error) { return t.machine(&base, capacity) },
	}}, t.candidates()...)
	if len(s.calls) > manyCalls {
		list = slices.DeleteFunc(list, func(c candidate) bool { return !c.telling })
	}
	var o Outcome
	t.try(&o, played{sequence: s, assumes: assumes}, played{}, list, 0)
	if len(o.Trials) == 0 {
		t.out.say(o.Replayed)
		return
	}
	t.out.Peaks = o.Trials
	t.out.say(fmt.Sprintf("No request failed. Replayed on a device without end, the %s requests and frees took %s of the driver at the most under the recorded settings; %s were recorded.",
		thousands(len(s.calls)-s.begins), event.FormatBytes(o.Trials[0].Peak), event.FormatBytes(t.peak)))
	t.out.say(o.Replayed)
}
