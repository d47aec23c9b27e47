package explain

import (
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/finding"
	"tideline/shared/fit"
	"tideline/shared/launch"
)

// verifier reruns a recorded run that ended for lack of memory, and notes what
// would have helped. Times are modelled, whatever they were in the recording;
// memory is the same.
type verifier struct {
	w       *api.Workload
	answer  *fit.Answer
	unknown string // why nothing was rerun

	redacted bool
}

// verify reruns the last failure of a run, the one that ended it. It returns
// nil where there is nothing to rerun.
func verify(run *analysis.Summary, found []finding.Finding, o *Options) *verifier {
	n := len(run.Failures)
	if n == 0 || len(run.Settings) == 0 || run.End != event.EndOutOfMemory || run.Failures[n-1].Reading == nil {
		return nil
	}
	last := &run.Failures[n-1]
	v := new(verifier)
	if v.w, v.unknown = workloadOf(run.Settings); v.w == nil {
		return v
	}
	p := &fit.Prober{Device: shortDevice(last.Reading.Device), Stop: o.Stop}
	base, ok := p.Try(v.w)
	switch {
	case !ok:
		v.unknown = "it is too long to be rerun here"
		return v
	case base.OOM == nil || base.Steps != int(last.Step) || base.OOM.Requested != last.Reading.Requested.N:
		v.unknown = "a rerun with modelled times does not fail in the same place, so nothing was tried"
		return v
	}
	q := fit.AskAbout(v.w, found)
	q.First = append(v.limits(last.Reading), q.First...)
	v.answer, ok = p.Ask(q, nil)
	if !ok {
		v.unknown = "it is too long to be rerun here"
	}
	return v
}

// workloadOf makes a workload of a run's settings, or says why it cannot.
func workloadOf(settings event.Fields) (*api.Workload, string) {
	w, problems := api.FromFields(settings)
	if len(problems) == 0 {
		problems = w.Validate(launch.Known())
	}
	if len(problems) > 0 {
		return nil, "it was not rerun: " + problems[0].String()
	}
	return w, ""
}

// shortDevice is a device's name as reruns have it.
func shortDevice(name string) string {
	if i := strings.LastIndex(name, "/device:"); i >= 0 {
		return "/" + name[i+len("/device:"):]
	}
	return name
}

// limits is the memory limit that the device could bear, where one was set and
// is lower.
func (v *verifier) limits(r *analysis.Reading) []finding.Change {
	i := fit.Entry(v.w, shortDevice(r.Device))
	if i < 0 || v.w.Devices[i].MemoryLimit == 0 || !r.Obtainable.Known || r.Obtainable.N <= v.w.Devices[i].MemoryLimit {
		return nil
	}
	return []finding.Change{{Field: "devices." + strconv.Itoa(i) + ".memory_limit", Value: strconv.FormatInt(r.Obtainable.N>>20, 10) + "MiB"}}
}

// checked is a finding with what came of its remedies.
type checked struct {
	finding.Finding
	base   *fit.Trial
	better []*fit.Trial
	worse  []*fit.Trial
}

// check reruns what findings suggest for a run that came to its end.
func check(run *analysis.Summary, found []finding.Finding, o *Options) []checked {
	out := make([]checked, len(found))
	var w *api.Workload
	if len(run.Settings) > 0 && run.Ended && run.End == event.EndDone {
		w, _ = workloadOf(run.Settings)
	}
	for i := range found {
		out[i].Finding = found[i]
		if w == nil || found[i].Severity == finding.Note || len(found[i].Try) == 0 {
			continue
		}
		p := &fit.Prober{Device: found[i].Device, Stop: o.Stop}
		if p.Device == "" {
			p.Device = "/GPU:0"
		}
		base, trials, ok := p.Compare(w, found[i].Try, func(base, t *fit.Trial) bool { return fit.Helps(found[i].ID, base, t) })
		if !ok || base == nil || !base.Passed || base.Steps != int(run.Steps) {
			continue
		}
		out[i].base = base
		for _, t := range trials {
			if fit.Helps(found[i].ID, base, t) {
				out[i].better = append(out[i].better, t)
			} else {
				out[i].worse = append(out[i].worse, t)
			}
		}
	}
	return out
}

// shownChange is a rerun's changes for people.
func shownChange(t *fit.Trial) string {
	var b strings.Builder
	b.WriteString(t.Short())
	for _, c := range t.Changes {
		switch {
		case strings.HasSuffix(c.Field, ".held"):
			b.WriteString(" (nobody else on the card)")
		case c.Field == "keep" && c.Value == "":
			b.WriteString(" (nothing is kept)")
		}
	}
	return b.String()
}
