package foreign

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/placelog"
)

// Reasons why an op is not on a GPU, as facts name them.
const (
	noKernel   = "no_gpu_kernel" // the text says that its type has none
	itsGroup   = "group"         // the text says that another op of its group has none
	belongs    = "host_op"       // it reads, decodes, saves or handles strings: known of its type
	notSaid    = ""
	mostPlaced = 200 // ops that a report lists
	mostNamed  = 6   // ops that a sentence or a table names
)

// hostOps are types of ops, or their beginnings or ends where marked by a star,
// that do what only the host can.
var hostOps = []string{
	"*Dataset*", "*Iterator*", "Decode*", "Read*", "Parse*", "String*", "*Summary*", "Save*", "Restore*", "*HashTable*", "Lookup*", "Print*", "Assert",
	"PyFunc*", "EagerPyFunc", "*Queue*", "MergeV2Checkpoints", "ShardedFilename", "*Reader*", "WriteFile", "MatchingFiles", "AsString", "RegexReplace",
	"NoOp", "Placeholder*", "*Generator*", "OptionalFromValue", "*Lookup*", "SparseTensorSliceDataset", "GenerateVocabRemapping",
}

func hostOp(typ string) bool {
	for _, p := range hostOps {
		begin, end := strings.HasPrefix(p, "*"), strings.HasSuffix(p, "*")
		w := strings.Trim(p, "*")
		switch {
		case begin && end && strings.Contains(typ, w), !begin && end && strings.HasPrefix(typ, w), typ == w:
			return typ != "ReadVariableOp"
		}
	}
	return false
}

// elsewhere is an op that is not on a GPU.
type elsewhere struct {
	*placelog.Op
	beside int
	reason string
	group  string // the type that keeps it there
}

// Placement judges where ops ran. It is nil where the text tells of none.
func Placement(rep *placelog.Report) *reading.Reading {
	if rep.Empty() {
		return nil
	}
	r := &reading.Reading{Kind: "tf-placement", Line: rep.Line, Name: "TensorFlow's placement of ops"}
	var odd, all []elsewhere
	gpu, host := 0, 0
	for i := range rep.Devices {
		if d := &rep.Devices[i]; placelog.GPU(d.Name) {
			gpu += d.Ops
		} else {
			host += d.Ops
		}
	}
	for i := range rep.Ops {
		e := elsewhere{Op: &rep.Ops[i], beside: rep.Beside(&rep.Ops[i])}
		switch {
		case rep.HasNoGPU(e.Type):
			e.reason = noKernel
		case rep.Held(e.Name) != "":
			e.reason, e.group = itsGroup, rep.Held(e.Name)
		case hostOp(e.Type):
			e.reason = belongs
		}
		all = append(all, e)
		if e.reason != belongs && e.beside > 0 {
			odd = append(odd, e)
		}
	}
	sort.SliceStable(odd, func(i, j int) bool { return odd[i].beside > odd[j].beside })
	placementFacts(&r.Facts, rep, all, gpu, host)
	placementRows(r, rep, odd)
	placementVerdict(r, rep, odd, gpu, host)
	if rep.Cut != "" || rep.More > 0 {
		r.Open = append(r.Open, "Not all ops are told apart: the text has more of them than are kept.")
	}
	return r
}

func placementFacts(f *reading.Facts, rep *placelog.Report, all []elsewhere, gpu, host int) {
	devices := make([]reading.Value, len(rep.Devices))
	for i := range rep.Devices {
		d, o := &rep.Devices[i], reading.Facts{}
		o.Text("device", d.Name)
		o.Int("ops", int64(d.Ops))
		o.Int("types", int64(len(d.Types)))
		devices[i] = reading.Object(o)
	}
	f.Set("devices", reading.List(devices...))
	f.Int("gpu_ops", int64(gpu))
	f.Int("other_ops", int64(host))
	var ops []reading.Value
	for i := range all {
		if len(ops) == mostPlaced {
			break
		}
		e, o := &all[i], reading.Facts{}
		o.Text("op", e.Name)
		o.Text("type", e.Type)
		o.Text("device", e.Device)
		o.Int("line", int64(e.Line))
		o.Int("count", int64(e.Count))
		o.Int("gpu_neighbours", int64(e.beside))
		o.Text("reason", e.reason)
		o.Text("held_by", e.group)
		ops = append(ops, reading.Object(o))
	}
	f.Set("ops_elsewhere", reading.List(ops...))
	f.Int("ops_elsewhere_more", int64(len(all)-len(ops)+rep.More))
	var refused []reading.Value
	for i := range rep.Refused {
		x, o := &rep.Refused[i], reading.Facts{}
		o.Text("op", x.Op)
		o.Text("wanted", x.Wanted)
		o.Int("line", int64(x.Line))
		o.Text("no_kernel_for", x.NoKernel)
		o.Bool("no_device", x.NoDevice)
		o.Text("group_on", x.Group)
		refused = append(refused, reading.Object(o))
	}
	f.Set("refused", reading.List(refused...))
	f.Texts("types_without_gpu_kernel", rep.NoGPU)
	f.Bool("groups_moved", rep.Moved)
}

// nameOf is the op's name, or its type where it was executed without one.
func nameOf(e *elsewhere) string {
	switch {
	case e.Name == "":
		return e.Type
	case e.Type == "":
		return e.Name
	default:
		return e.Name + " (" + e.Type + ")"
	}
}

func placementRows(r *reading.Reading, rep *placelog.Report, odd []elsewhere) {
	for i := range rep.Devices {
		d := &rep.Devices[i]
		list := slices.Clone(d.Types)
		sort.SliceStable(list, func(a, b int) bool { return list[a].Count > list[b].Count })
		words := counted(d.Ops, "op")
		var most []string
		for k := range min(len(list), mostNamed) {
			most = append(most, strconv.Itoa(list[k].Count)+" "+list[k].Name)
		}
		if len(most) > 0 {
			words += ": " + strings.Join(most, ", ")
		}
		if n := len(list) - mostNamed; n > 0 {
			words += fmt.Sprintf(" and %d types more", n)
		}
		r.Row(d.Name, words)
	}
	for i := range min(len(odd), mostNamed) {
		e := &odd[i]
		r.Row("on "+e.Device, nameOf(e)+because(e))
	}
	for i := range min(len(rep.Refused), mostNamed) {
		x := &rep.Refused[i]
		r.Row("refused", x.Op+onto(x.Wanted)+refusedFor(x))
	}
}

func because(e *elsewhere) string {
	switch e.reason {
	case noKernel:
		return ", its type has no kernel for a GPU"
	case itsGroup:
		return ", with its group, in which " + e.group + " has no kernel for a GPU"
	default:
		return ""
	}
}

func onto(device string) string {
	if device == "" {
		return ""
	}
	return " on " + device
}

// where is the device that was asked for, in a sentence.
func where(device string) string {
	if device == "" {
		return " anywhere"
	}
	return onto(device)
}

func refusedFor(x *placelog.Refusal) string {
	switch {
	case x.NoKernel != "":
		return ", no kernel for " + x.NoKernel
	case x.NoDevice:
		return ", no such device"
	case x.Group != "":
		return ", its group must be on " + x.Group
	default:
		return ""
	}
}

func placementVerdict(r *reading.Reading, rep *placelog.Report, odd []elsewhere, gpu, host int) {
	names := func() string {
		var list []string
		for i := range min(len(odd), mostNamed) {
			list = append(list, nameOf(&odd[i]))
		}
		if n := len(odd) - len(list); n > 0 {
			list = append(list, fmt.Sprintf("%d more", n))
		}
		return strings.Join(list, ", ")
	}
	told := 0
	for i := range odd {
		if odd[i].reason != notSaid {
			told++
		}
	}
	switch {
	case rep.Refuses > 0:
		x := &rep.Refused[0]
		r.Verdict = "placement_refused"
		r.Why = fmt.Sprintf("%s could not be put%s%s.", x.Op, where(x.Wanted), refusedFor(x))
		switch {
		case x.NoDevice:
			r.Next = append(r.Next, "See which devices the program has (tf.config.list_physical_devices()), and name one of them.")
		case len(rep.NoGPU) > 0:
			r.Why += fmt.Sprintf(" In its group, which must share a device, these have no kernel for a GPU: %s.", strings.Join(rep.NoGPU[:min(len(rep.NoGPU), mostNamed)], ", "))
		}
		if x.Group != "" {
			r.Next = append(r.Next, "Make the variables of the group on the CPU (tf.device('/CPU:0') around them): where they are, all of the group must be.")
			break
		}
		r.Next = append(r.Next, "Put the op on the CPU with tf.device, or allow soft placement (tf.config.set_soft_device_placement(True)), which does so by itself; each step then copies what it needs and gives.")
	case gpu == 0 && host > 0:
		r.Verdict = "all_on_cpu"
		r.Why = fmt.Sprintf("All %s ran without a GPU: TensorFlow saw none, or everything was put on the CPU.", counted(host, "op"))
		r.Open = append(r.Open, "Why there was no GPU is not in the text; the lines at the start of a program say which libraries were missing.")
		r.Next = append(r.Next, "Ask tf.config.list_physical_devices('GPU'). If it is empty, look at the first lines of the log for libraries that could not be opened.")
	case len(odd) > 0:
		r.Verdict = "ops_on_cpu"
		r.Why = fmt.Sprintf("%s ran elsewhere between neighbours on the GPU, which costs copies each time: %s.", counted(len(odd), "op"), names())
		if told < len(odd) {
			of := "is not in the text"
			if told > 0 {
				of = "is told of " + strconv.Itoa(told) + " only"
			}
			r.Open = append(r.Open, "Why they are not on the GPU "+of+". It can be a tf.device around them, a type or a data type without a kernel for a GPU (small integers stay on the host), or an op that they share a device with.")
		}
		r.Next = append(r.Next, "Turn soft placement off once (tf.config.set_soft_device_placement(False)): what has no kernel for the GPU then fails by name.",
			"Move them to the data pipeline, or use ops that have a kernel for a GPU; where tf.device put them on the CPU, take it away.")
	case len(rep.NoGPU) > 0 && gpu+host == 0:
		r.Verdict = "ops_on_cpu"
		r.Why = fmt.Sprintf("A group of ops that must share a device has types without a kernel for a GPU, so all of it goes to the CPU: %s.", strings.Join(rep.NoGPU[:min(len(rep.NoGPU), mostNamed)], ", "))
		r.Next = append(r.Next, "Replace the ops that have no kernel for a GPU, or leave the group on the CPU and move it out of the step.")
	default:
		r.Verdict = "ops_on_gpu"
		r.Why = "No op that a GPU could have run stands elsewhere between ops on the GPU."
		if host > 0 {
			r.Why += fmt.Sprintf(" %s elsewhere: what only the host does, or apart from the rest.", counted(host, "op"))
		}
	}
	r.Open = append(r.Open, "Which ops feed which is not in such lines: neighbours are those of the same scope, or before and after in time.")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
