package explain

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	common "tideline/shared/analysis/reading"
	"tideline/shared/ingest"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/remedy"
)

// replayOptions bound the replays of one input.
func (o *Options) replayOptions() remedy.Options {
	return remedy.Options{Stop: o.Stop}.Shared()
}

// replayText replays what a text holds, unless that is not wanted.
func (rep *report) replayText(t *ingest.Text, dumps []*bfclog.Dump, o *Options) {
	if o.NoReruns {
		return
	}
	all := o.replayOptions()
	remedy.Text(t, t.Readings, all)
	for i, d := range dumps {
		out := remedy.BFC(d, rep.failures[i].Reading, all)
		rep.failures[i].replays = new(common.Reading)
		out.Attach(rep.failures[i].replays)
	}
}

// replayTimeline replays the requests of a timeline whose workload is not known,
// up to the failure that came last.
func (rep *report) replayTimeline(t *remedy.Timeline, o *Options) {
	out := t.Outcome(o.replayOptions())
	if n := len(rep.failures); n > 0 && out.Any() {
		f := &rep.failures[n-1]
		f.reruns, rep.reruns = nil, nil // its settings are another program's
		f.replays = new(common.Reading)
		out.Attach(f.replays)
	}
}

// dumpsOf explains the dumps of a log.
func (rep *report) dumpsOf(log *bfclog.Log) []*bfclog.Dump {
	rep.notices = log.Notices
	for _, d := range log.Dumps {
		rep.failures = append(rep.failures, failure{Reading: analysis.FromDump(d)})
	}
	return log.Dumps
}

// maxTrials is how many trials of a kind a terminal report lists.
const maxTrials = 6

// replaysText says what replays came to: which settings would have served the
// request, or that none would and what the least reduction is.
func replaysText(w *bufio.Writer, width int, r *common.Reading) {
	if r.Replayed == "" && len(r.Trials) == 0 && len(r.Peaks) == 0 && r.Least == 0 {
		return
	}
	title, items := "Verified by replay", []string(nil)
	if len(r.Trials) == 0 {
		title = "What would have helped, as far as a replay tells"
	}
	serving, failing := split(r.Trials)
	for i, t := range serving {
		if i == maxTrials {
			items = append(items, fmt.Sprintf("And %d more; --json lists them all.", len(serving)-i))
			break
		}
		items = append(items, served(t))
	}
	if len(serving) == 0 && len(failing) > 0 {
		if r.Short > 0 || failing[0].Assumes == "" {
			items = append(items, fmt.Sprintf("Nothing would have served the request: %d other settings and allocators were tried, and none did.", len(failing)))
		} else {
			items = append(items, fmt.Sprintf("Nothing is known to serve the request: %d other settings and allocators were tried. That proves nothing of a history that is not known.", len(failing)))
		}
	}
	if len(failing) > 0 && r.Short == 0 { // of a full pool the settings are not worth naming
		word := "Did not serve it: "
		if failing[0].Assumes != "" {
			word = "Not known to serve it: "
		}
		items = append(items, word+names(failing)+".")
	}
	if len(r.Peaks) > 0 {
		title = "Replayed under other settings"
	}
	if r.Least > 0 {
		items = append(items, fmt.Sprintf("The least reduction: the request must shrink by %s to be served as things were.", exact(r.Least)))
	}
	if r.Short > 0 {
		items = append(items, fmt.Sprintf("What is live and the request are %s more than there is: so much less must be live, or asked for, before any placement serves.", exact(r.Short)))
	}
	if r.Replayed != "" {
		items = append(items, r.Replayed)
	}
	if a := assumed(r.Trials, r.Peaks); a != "" {
		items = append(items, "Assumed: "+a+".")
	}
	list(w, width, title, items)
	peaksText(w, r.Peaks)
}

// assumed is what trials of the program's own allocator take for granted; those
// of others do so as well.
func assumed(lists ...[]common.Trial) string {
	for _, l := range lists {
		for i := range l {
			if l[i].Own && l[i].Assumes != "" {
				return l[i].Assumes
			}
		}
	}
	return ""
}

func split(list []common.Trial) (serving, failing []common.Trial) {
	for _, t := range list {
		if t.Serves {
			serving = append(serving, t)
		} else {
			failing = append(failing, t)
		}
	}
	return serving, failing
}

func served(t common.Trial) string {
	s := t.Setting + " would have served the request"
	if t.Spare >= 0 {
		s += ", with " + exact(t.Spare) + " to spare"
	}
	if t.Assumes != "" {
		s += ", if it came about as is assumed"
	}
	return s + "."
}

// exact is a size for people with its bytes.
func exact(n int64) string {
	if n < 1024 {
		return event.FormatBytes(n)
	}
	return fmt.Sprintf("%s (%d bytes)", event.FormatBytes(n), n)
}

// names lists settings, with what they have in common said once.
func names(list []common.Trial) string {
	var out []string
	prefix := ""
	for _, t := range list {
		name, value, ok := strings.Cut(t.Setting, "=")
		switch {
		case ok && name == prefix:
			out[len(out)-1] += " or " + value
		default:
			out = append(out, t.Setting)
		}
		prefix = ""
		if ok {
			prefix = name
		}
	}
	return strings.Join(slices.Clip(out), ", ")
}

// peaksText lists what the requests take of the driver under other settings.
func peaksText(w *bufio.Writer, list []common.Trial) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, "\nTaken of the driver at the most, by replay")
	for i, t := range list {
		if i == maxTrials+2 {
			fmt.Fprintf(w, "  and %d more; --json lists them all\n", len(list)-i)
			break
		}
		fmt.Fprintf(w, "  %11s  %s\n", event.FormatBytes(t.Peak), t.Setting)
	}
}

// replaysJSON writes the same under the names that a reading has.
func (f *failure) replaysJSON(o *object) {
	r := f.replays
	if r == nil {
		r = new(common.Reading)
	}
	for _, x := range r.Replays() {
		o.member(x.Name, string(x.Value.AppendJSON(nil)))
	}
}
