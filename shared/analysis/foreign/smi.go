package foreign

import (
	"cmp"
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/smilog"
)

// SMI judges each state that nvidia-smi showed: does the sum over processes
// explain what is used?
func SMI(rep *smilog.Report) []*reading.Reading {
	var out []*reading.Reading
	for i, s := range rep.Screens {
		if i == maxScreens {
			out[len(out)-1].Open = append(out[len(out)-1].Open, fmt.Sprintf("%d more screens follow, which were left out.", len(rep.Screens)-i))
			break
		}
		out = append(out, smiScreen(s))
	}
	if rep.BadLine > 0 && len(out) > 0 {
		out[0].Open = append(out[0].Open, fmt.Sprintf("Line %d does not fit the header before it and was left out: %q.", rep.BadLine, rep.Bad))
	}
	return out
}

const maxScreens = 64

// hiddenMiB is from when on what no process accounts for is more than a
// context: a choice of ours.
const hiddenMiB = 1024

// smiSums are the figures of a screen in MiB.
type smiSums struct {
	accounted   int64
	used, total int64
	usedKnown   bool
	reserved    int64 // total - used - free
	hasReserved bool
	unknown     int // processes without a figure
	dead        int
	deadMiB     int64
	hidden      int // places of the device in the screen; -1 for none, or for all together
	apart       []deviceSums
}

// deviceSums are those of one device.
type deviceSums struct{ used, accounted int64 }

func (d deviceSums) rest() int64 { return d.used - d.accounted }

// rest is what no row of the table accounts for, on the device that has the
// most of it where they can be told apart.
func (t *smiSums) rest() (used, accounted int64) {
	if t.hidden >= 0 {
		return t.apart[t.hidden].used, t.apart[t.hidden].accounted
	}
	return t.used, t.accounted
}

func sumScreen(s *smilog.Screen) smiSums {
	t := smiSums{hidden: -1, apart: make([]deviceSums, len(s.GPUs))}
	told := sumProcesses(s, &t)
	t.usedKnown = s.HasGPUs && len(s.GPUs) > 0
	t.hasReserved = t.usedKnown
	for i := range s.GPUs {
		g := &s.GPUs[i]
		used := g.Used
		if used < 0 {
			used = instances(s, g.Index)
		}
		t.usedKnown = t.usedKnown && used >= 0
		t.used += max(0, used)
		t.total += max(0, g.Total)
		t.apart[i].used = max(0, used)
		switch {
		case g.Reserved >= 0:
			t.reserved += g.Reserved
		case s.CSV && g.Total >= 0 && g.Used >= 0 && g.Free >= 0:
			t.reserved += g.Total - g.Used - g.Free
		default:
			t.hasReserved = false
		}
	}
	if told && t.usedKnown && len(s.GPUs) > 1 {
		t.hidden = 0
		for i := range t.apart {
			if t.apart[i].rest() > t.apart[t.hidden].rest() {
				t.hidden = i
			}
		}
	}
	return t
}

// instances is what a device's instances use together; -1 where it has none.
func instances(s *smilog.Screen, gpu int64) int64 {
	sum := int64(-1)
	for i := range s.MIG {
		if s.MIG[i].GPU == gpu {
			sum = max(0, sum) + s.MIG[i].Used
		}
	}
	return sum
}

// sumProcesses adds up the rows of processes. It says whether each of them tells
// its device.
func sumProcesses(s *smilog.Screen, t *smiSums) (told bool) {
	told = true
	seen := map[[2]string]bool{}
	for i := range s.Processes {
		p := &s.Processes[i]
		// A process may be listed twice for one device, as C and as G.
		k := [2]string{fmt.Sprint(p.PID), fmt.Sprint(p.GPU, p.UUID, p.Used)}
		if seen[k] && p.PID >= 0 {
			continue
		}
		seen[k] = true
		if p.Dead() {
			t.dead++
			t.deadMiB += max(0, p.Used)
		}
		if p.Used < 0 {
			t.unknown++
			continue
		}
		t.accounted += p.Used
		at := slices.IndexFunc(s.GPUs, func(g smilog.GPU) bool {
			return p.GPU >= 0 && g.Index == p.GPU || p.UUID != "" && g.UUID == p.UUID
		})
		if at < 0 {
			told = false
			continue
		}
		t.apart[at].accounted += p.Used
	}
	return told
}

func smiScreen(s *smilog.Screen) *reading.Reading {
	r := &reading.Reading{Kind: "nvidia-smi", Line: s.Line, Name: "nvidia-smi"}
	t := sumScreen(s)
	f := &r.Facts
	f.Text("driver", s.Driver)
	f.Text("cuda_version", s.CUDA)
	f.Text("time", s.Time)
	smiGPUs(f, s)
	smiProcesses(f, s)
	accounted := s.HasTable && s.Refused == "" && (t.unknown == 0 || t.accounted > 0)
	f.IntIf("accounted_mib", t.accounted, accounted)
	f.IntIf("unaccounted_mib", t.used-t.accounted, accounted && t.usedKnown)
	f.IntIf("reserved_mib", t.reserved, t.hasReserved)
	f.IntIf("card_total_mib", t.total, t.total > 0)
	f.IntIf("card_used_mib", t.used, t.usedKnown)
	f.Int("samples", int64(max(1, s.Samples)))
	smiInstances(f, s)
	f.Bool("truncated", s.Open)
	smiJudge(r, s, &t, accounted)
	return r
}

func smiGPUs(f *reading.Facts, s *smilog.Screen) {
	if !s.HasGPUs {
		f.Null("gpus")
		return
	}
	list := reading.List()
	for i := range s.GPUs {
		g := &s.GPUs[i]
		var o reading.Facts
		o.Int("index", g.Index)
		known := func(name string, n int64) {
			o.IntIf(name, n, n >= 0)
		}
		if s.CSV {
			if g.Name != "" {
				o.Text("name", g.Name)
			}
			known("total_mib", g.Total)
			known("used_mib", g.Used)
			known("free_mib", g.Free)
			if g.Reserved >= 0 {
				o.Int("reserved_mib", g.Reserved)
			}
			if g.Util >= 0 {
				o.Int("util_percent", g.Util)
			}
			if s.Samples > 1 {
				known("used_first_mib", g.First)
				known("used_peak_mib", g.Peak)
			}
		} else {
			o.Text("name_shown", g.Name)
			known("used_mib", g.Used)
			known("total_mib", g.Total)
			known("free_mib", g.Free)
			known("util_percent", g.Util)
		}
		list.List = append(list.List, reading.Object(o))
	}
	f.Set("gpus", list)
}

var instanceNames = [...]string{"gpu", "gi", "ci", "mig_device", "used_mib", "total_mib", "free_mib"}

// smiInstances lists the parts that devices are split into.
func smiInstances(f *reading.Facts, s *smilog.Screen) {
	if len(s.MIG) == 0 {
		f.Null("mig_devices")
		return
	}
	list := reading.List()
	for i := range s.MIG {
		m := &s.MIG[i]
		var o reading.Facts
		for k, n := range [...]int64{m.GPU, m.GI, m.CI, m.Device, m.Used, m.Total, max(0, m.Total-m.Used)} {
			o.Int(instanceNames[k], n)
		}
		list.List = append(list.List, reading.Object(o))
	}
	f.Set("mig_devices", list)
}

// smiProcesses lists the rows of a screen's table; of a CSV, as of a query, it
// gives their number, with the rows beside it.
func smiProcesses(f *reading.Facts, s *smilog.Screen) {
	if !s.HasTable {
		f.Null("processes")
		return
	}
	list := reading.List()
	for i := range s.Processes {
		p := &s.Processes[i]
		var o reading.Facts
		if p.GPU >= 0 {
			o.Int("gpu", p.GPU)
		}
		o.Int("pid", p.PID)
		if p.Type != "" {
			o.Text("type", p.Type)
		}
		o.Text("name", p.Name)
		o.IntIf("used_mib", p.Used, p.Used >= 0)
		list.List = append(list.List, reading.Object(o))
	}
	if !s.CSV {
		f.Set("processes", list)
		f.Int("process_count", int64(len(s.Processes)))
		return
	}
	f.Int("processes", int64(len(s.Processes)))
	f.Set("process_list", list)
}

// accumulating finds a program that runs several times on one device and
// holds most of what is accounted for.
func accumulating(s *smilog.Screen) (name string, n int, mib int64) {
	type program struct {
		name string
		gpu  string
	}
	count := map[program]int{}
	held := map[program]int64{}
	var all int64
	best := program{}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Used < 0 || p.Type == "G" || p.Dead() {
			continue
		}
		k := program{p.Name, fmt.Sprint(p.GPU, p.UUID)}
		count[k]++
		held[k] += p.Used
		all += p.Used
		if count[k] > count[best] {
			best = k
		}
	}
	if count[best] >= 3 && 2*held[best] > all {
		return best.name, count[best], held[best]
	}
	return "", 0, 0
}

// oneTable is what there is to say of cards without processes, or the other way
// round: the figures first.
func oneTable(s *smilog.Screen, t *smiSums, accounted bool) string {
	const apart = "so used memory and processes cannot be compared."
	switch {
	case t.usedKnown && !s.HasTable:
		on, verb := cmp.Or(s.GPUs[0].Name, "the card"), "are"
		if n := len(s.GPUs); n > 1 {
			on = fmt.Sprintf("%d cards", n)
		}
		if s.Samples > 1 {
			verb = "were last"
		}
		if t.total == 0 {
			return fmt.Sprintf("%d MiB %s used on %s. The size of the device and the table of processes are not here, %s", t.used, verb, on, apart)
		}
		return fmt.Sprintf("%d of %d MiB %s used on %s. The table of processes is not here, %s", t.used, t.total, verb, on, apart)
	case accounted && !s.HasGPUs:
		return fmt.Sprintf("The processes listed (%d) hold %d MiB together. The table of cards is not here, %s", len(s.Processes), t.accounted, apart)
	}
	return "Only one of the two tables is here, " + apart
}

func smiRows(r *reading.Reading, s *smilog.Screen) {
	row := func(name string, used, total int64) {
		switch {
		case used >= 0 && total >= 0:
			r.Row(name, fmt.Sprintf("%d of %d MiB", used, total))
		case used >= 0:
			r.Row(name, fmt.Sprintf("%d MiB", used))
		}
	}
	for i := range min(len(s.GPUs), 8) {
		g := &s.GPUs[i]
		row(fmt.Sprintf("GPU %d %s", g.Index, g.Name), g.Used, g.Total)
	}
	for i := range min(len(s.MIG), 8) {
		m := &s.MIG[i]
		row(fmt.Sprintf("instance %d of GPU %d", m.Device, m.GPU), m.Used, m.Total)
	}
}

func smiJudge(r *reading.Reading, s *smilog.Screen, t *smiSums, accounted bool) {
	used, listed := t.rest()
	rest := used - listed
	smiRows(r, s)
	if accounted {
		r.Row("held by the processes listed", fmt.Sprintf("%d MiB", t.accounted))
	}
	program, n, held := accumulating(s)
	switch {
	case s.Monitor && !s.Sized:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = "The columns hold no figure of memory."
		r.Next = []string{"Ask for it: nvidia-smi dmon -s mu, or pmon -s um."}
	case t.dead > 0 && (t.deadMiB > 0 || t.usedKnown && rest > hiddenMiB):
		r.Verdict = "zombie_holder"
		who := fmt.Sprintf("%d of the processes listed no longer have a name: they are dead, or in another namespace, and hold", t.dead)
		if t.dead == 1 {
			who = "One of the processes listed no longer has a name: it is dead, or in another namespace, and holds"
		}
		r.Why = fmt.Sprintf("%s %d MiB that are listed, with %d MiB more that no row accounts for.", who, t.deadMiB, max(0, t.used-t.accounted))
		r.Next = []string{"End the process ids on the host, or their parents; if none exists any more, the device must be reset."}
	case accounted && t.usedKnown && t.unknown == 0 && rest > hiddenMiB:
		if s.Open {
			r.Verdict = string(analysis.UndeterminedTruncated)
			r.Why = fmt.Sprintf("%d MiB are used and the processes listed hold %d, but the table of processes is cut: others may have stood below.", used, listed)
			r.Next = []string{"Look at the whole table, to its closing line."}
			break
		}
		r.Verdict = "hidden_holder"
		on, of := "", "processes listed"
		if t.hidden >= 0 {
			on, of = fmt.Sprintf(" on GPU %d", s.GPUs[t.hidden].Index), "processes listed for it"
		}
		r.Why = fmt.Sprintf("%d MiB are used%s, and the %s hold %d: the rest belongs to something this table cannot name, in another container or namespace, or left behind by a dead process.", used, on, of, listed)
		r.Next = []string{"Look on the host (nvidia-smi there, or fuser -v /dev/nvidia*), and end the holder."}
	case n > 0:
		r.Verdict = "accumulating_processes"
		r.Why = fmt.Sprintf("%d processes of %s hold %s together. One program seldom wants that many on a card: they may be left over from earlier starts.", n, program, event.FormatBytes(held<<20))
		r.Next = []string{"Find out which of them are still wanted (ps shows when each was started), and end the others before the next one is started."}
	case accounted && t.usedKnown && t.unknown == 0:
		r.Verdict = "explained"
		r.Why = fmt.Sprintf("The processes account for %d of %d MiB; the other %d MiB are the driver's.", t.accounted, t.used, t.used-t.accounted)
	case s.HasTable && t.unknown > 0, s.Refused != "":
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = "The driver does not tell how much each process holds here, as on Windows and on some consumer cards."
	case len(s.GPUs) == 0 && len(s.MIG) > 0:
		r.Verdict = "parse_only"
		r.Why = fmt.Sprintf("Only the instances of a split device are here (%d).", len(s.MIG))
	case s.Monitor, s.HasGPUs, s.HasTable:
		r.Verdict = "parse_only"
		r.Why = oneTable(s, t, accounted)
	default:
		r.Verdict = string(analysis.UndeterminedNoState)
	}
	if t.hasReserved && t.reserved > 0 {
		r.Row("reserved by the driver", fmt.Sprintf("%d MiB", t.reserved))
	}
	if s.Nameless && s.Samples > 1 {
		r.Open = append(r.Open, "The rows do not say which device they are of: they are taken for one device over time. If they are several, ask for index or uuid too.")
	}
	if !s.HasGPUs {
		r.Open = append(r.Open, "The size of the card and what is used of it in all is not in the text.")
	}
	if !s.HasTable {
		r.Open = append(r.Open, "Which processes hold the memory is not in the text.")
	}
}
