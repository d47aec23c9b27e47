package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	common "tideline/shared/analysis/reading"
	"tideline/shared/analysis/reading/saved"
	"tideline/shared/export/chrome"
	"tideline/shared/golden"
	"tideline/shared/ingest"
)

// place is a field's section of docs/formats/report.md and its name there.
type place struct{ section, name string }

// sections are the headings by the paths of the objects that they describe;
// the first that fits counts.
var sections = []struct{ prefix, section string }{
	{"failures[].holders_by_category[].", "`failures[].holders_by_category[]` and `failures[].holders_by_op[]`"},
	{"failures[].holders_by_op[].", "`failures[].holders_by_category[]` and `failures[].holders_by_op[]`"},
	{"failures[].trials[].", "`trials[]` and `peaks[]`"},
	{"failures[].peaks[].", "`trials[]` and `peaks[]`"},
	{"failures[].ledger.", ledgers},
	{"failures[].", "`failures[]`"},
	{"notices[].", "`notices[]`"},
	{"saved.", "`saved`"},
	{"findings[].numbers.", "`findings[].numbers`"},
	{"findings[].holders[].", "`findings[].holders[]`"},
	{"findings[].base.", reruns},
	{"findings[].reruns[].", reruns},
	{"findings[].", "`findings[]`"},
	{"without_limit.", reruns},
	{"reruns[].", reruns},
	{"run.allocators[].ledger.", ledgers},
	{"run.allocators[].", "`run.allocators[]`"},
	{"run.transfers[].", "`run.transfers[]`"},
	{"run.stalls.", "`run.stalls`"},
	{"run.", "`run`"},
	{"readings[].ledger.", ledgers},
	{"readings[].trials[].", "`trials[]` and `peaks[]`"},
	{"readings[].held[].", "`readings[].held[]`"},
	{"readings[].growth[].", "`readings[].growth[]`"},
	{"readings[].copy_time.", "`readings[].copy_time`"},
	{"readings[].peaks[].", "`trials[]` and `peaks[]`"},
	{"readings[].", "`readings[]`"},
	{"", "The report"},
}

const ledgers = "`ledger`"

// The sections of the object that tells of several files, which TestSeveralIsDescribed
// holds.
const severalFiles, severalRows = "Several files", "`side_by_side.files[]`"

const reruns = "`without_limit`, `reruns[]`, `findings[].base` and `findings[].reruns[]`"

// keyed are objects whose names are the input's.
var keyed = regexp.MustCompile(`(^|\.)(processes|device_copies|memcpy|by_kind|peak_by_category|trace_actions|segment_types)\.[^.]+`)

// described reads the page: the types of each field.
func described(t *testing.T) map[place][]string {
	t.Helper()
	out := map[place][]string{}
	section := ""
	for line := range strings.SplitSeq(string(read(t, "../../docs/formats/report.md")), "\n") {
		if h, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			section = h
			continue
		}
		if section == "`findings[].numbers`" {
			for _, m := range regexp.MustCompile("`([a-z0-9_]+)`[,.]").FindAllStringSubmatch(line, -1) {
				out[place{section, m[1]}] = []string{"number"}
			}
		}
		cells := strings.Split(line, " | ")
		if name, ok := strings.CutPrefix(cells[0], "| `"); ok && len(cells) == 4 {
			name = strings.TrimSuffix(name, "`")
			if _, twice := out[place{section, name}]; twice {
				t.Errorf("%s, %s is described twice", section, name)
			}
			out[place{section, name}] = strings.Split(cells[1], " or ")
			if strings.TrimSpace(cells[3]) == "|" {
				t.Errorf("%s, %s is not explained", section, name)
			}
		}
	}
	return out
}

// pageCheck collects what reports emit and holds it against what is described.
type pageCheck struct {
	t         *testing.T
	described map[place][]string
	emitted   map[place]bool
	unknown   map[place]bool
}

func (p *pageCheck) report(name string, file []byte, o Options) {
	p.t.Helper()
	o.JSON = true
	var out bytes.Buffer
	if err := Explain(name, bytes.NewReader(file), &out, o); err != nil {
		p.t.Fatal(err)
	}
	d := json.NewDecoder(&out)
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	p.object("", "", v)
}

func (p *pageCheck) object(path, kind string, v map[string]any) {
	if path == "readings[]." {
		kind, _ = v["kind"].(string)
	}
	for name, x := range v {
		p.field(path+name, kind, x)
	}
}

func (p *pageCheck) field(path, kind string, v any) {
	at := p.place(path, kind)
	p.emitted[at] = true
	if types, ok := p.described[at]; !ok {
		p.unknown[at] = true
	} else if !fits(v, types) {
		p.t.Errorf("%v is %T, described as %v", at, v, types)
	}
	switch x := v.(type) {
	case map[string]any:
		p.object(path+".", kind, x)
	case []any:
		for _, e := range x {
			if o, ok := e.(map[string]any); ok {
				p.object(path+"[].", kind, o)
			}
		}
	}
}

// place finds where a field is described; a reading's own first.
func (p *pageCheck) place(path, kind string) place {
	path = keyed.ReplaceAllString(path, "$1$2.*")
	path = regexp.MustCompile(`extrapolated_at_step_[0-9]+_[a-z]+$`).ReplaceAllString(path, "extrapolated_at_step_*")
	path = regexp.MustCompile(`\.slope_[a-z]+_per_step$`).ReplaceAllString(path, ".slope_*_per_step")
	for _, s := range sections {
		name, ok := strings.CutPrefix(path, s.prefix)
		if !ok {
			continue
		}
		at := place{s.section, name}
		if s.section == "`readings[]`" {
			own := place{"Readings of kind `" + kind + "`", name}
			if _, ok := p.described[own]; ok {
				return own
			}
			if _, ok := p.described[at]; !ok && (kind == "xla-oom" || kind == "tf-bfc-oom") {
				return place{"`failures[]`", name}
			}
			if _, ok := p.described[at]; !ok {
				return own
			}
		}
		return at
	}
	return place{"", path}
}

func fits(v any, types []string) bool {
	is := ""
	switch x := v.(type) {
	case nil:
		is = "null"
	case bool:
		is = "boolean"
	case string:
		is = "string"
	case json.Number:
		if is = "integer"; strings.ContainsAny(x.String(), ".eE") {
			is = "number"
		} else if slices.Contains(types, "number") {
			return true
		}
	case []any:
		return slices.ContainsFunc(types, func(s string) bool { return strings.HasPrefix(s, "array") })
	case map[string]any:
		is = "object"
	}
	return slices.Contains(types, is)
}

// TestEveryFieldOfTheReportIsDescribed: over all cases and demos every field is
// in the page with its type, and every field of the page is emitted.
func TestEveryFieldOfTheReportIsDescribed(t *testing.T) {
	p := pageCheck{t: t, described: described(t), emitted: map[place]bool{}, unknown: map[place]bool{}}
	if len(p.described) < 300 {
		t.Fatalf("only %d fields are described", len(p.described))
	}
	folders, err := filepath.Glob(filepath.Join(golden.Cases(t), "*", "case.json"))
	if err != nil || len(folders) < 30 {
		t.Fatalf("%d cases, %v", len(folders), err)
	}
	for _, f := range folders {
		id := filepath.Base(filepath.Dir(f))
		inputs, _ := golden.Case(t, id)
		replayed := slices.Contains([]string{"07", "13", "24"}, id[:2])
		for name, b := range inputs {
			p.report(name, b, Options{NoReruns: !replayed})
		}
		if len(inputs) > 1 { // both tables of one screen, as the command puts them together
			var all []byte
			names := make([]string, 0, len(inputs))
			for name := range inputs {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				all = append(append(all, inputs[name]...), '\n')
			}
			p.report(id, all, Options{NoReruns: true})
		}
	}
	for _, name := range []string{"leak", "oom-batch", "oom-resnet", "oom-model", "stall", "copies", "transfers", "fragmentation", "wasteful-dtype", "planned", "cpu-bottleneck", "demo"} {
		p.report(name, exampleFile(t, name), Options{NoReruns: name != "leak" && name != "stall"})
	}
	notice := "2021-01-01 00:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:245] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.29GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.\n"
	p.report("notice", append([]byte(notice), read(t, copies+"/05-tf-bfc-2023-cifar-fragmented/input.log")...), Options{NoReruns: true})
	for name, s := range map[string]string{"library": library, "start": start, "placement": placement, "killed": killed, "array": array} {
		p.report(name, []byte(s), Options{NoReruns: true})
	}
	for _, name := range []string{"rmm-messages", "ort-messages", "smi-470-mig", "torch-messages"} {
		p.report(name, read(t, "../../shared/ingest/testdata/"+name+".txt"), Options{NoReruns: true})
	}
	both := Join(Part{"dump", bytes.NewReader(read(t, copies+"/05-tf-bfc-2023-cifar-fragmented/input.log"))}, Part{"library", strings.NewReader(library)})
	pasted, err := io.ReadAll(both)
	if err != nil {
		t.Fatal(err)
	}
	p.report(both.Name(), pasted, Options{NoReruns: true, Parts: both})
	leak := exampleFile(t, "leak")
	p.report("cut", leak[:len(leak)*2/3], Options{})
	p.report("a snapshot of a failure", oomSnapshot(t, 1000), Options{NoReruns: true})
	p.report("trace", traceOf(t, leak), Options{})
	p.report("saved", keeping(t, &saved.Readings{Kind: "rmm-log", Cut: "too long", LeftOut: 1, List: []*common.Reading{{Kind: "rmm-log", Line: 3, Verdict: "balanced", Why: "all was freed"}}}), Options{})
	for at := range p.unknown {
		t.Errorf("not described: %v", at)
	}
	for at := range p.described {
		if !p.emitted[at] && !rare[at] && at.section != severalFiles && at.section != severalRows {
			t.Errorf("described and never emitted: %v", at)
		}
	}
}

// keeping is a timeline of no event that keeps readings.
func keeping(t *testing.T, r *saved.Readings) []byte {
	t.Helper()
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{})
	if err := errors.Join(w.WriteReadings(r.Append(nil)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWhatWasCutIsSaidOfSavedReadings: of the input, not of the timeline.
func TestWhatWasCutIsSaidOfSavedReadings(t *testing.T) {
	file := keeping(t, &saved.Readings{Kind: "rmm-log", Cut: "too long", LeftOut: 2, List: []*common.Reading{{Kind: "rmm-log", Line: 3, Name: "RMM", Verdict: "balanced"}}})
	for _, o := range []Options{{}, {HTML: true}} {
		report := strings.Join(strings.Fields(explain(t, "x.tideline", file, o)), " ")
		for _, want := range []string{"made of another file (rmm-log), and", "Not all of that file was read: too long.", "2 more readings were left out.", "line 3"} {
			if !strings.Contains(report, want) {
				t.Errorf("%v: no %q in %s", o.HTML, want, report)
			}
		}
	}
}

// What no case holds: messages of libraries, a start alone, placements, kills.
const (
	library   = "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 2919 MB memory:  -> device: 0, name: Tesla T4, pci bus id: 0000:00:04.0\nE cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\n"
	start     = "Found device 0 with properties:\ntotalMemory: 14.76GiB freeMemory: 363.69MiB\nCreated TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 52 MB memory)\n"
	array     = `I log_memory.cc:35] __LOG_MEMORY__ MemoryLogTensorAllocation { step_id: 2 kernel_name: "_EagerConst" tensor { dtype: DT_FLOAT shape { dim { size: 153600000 } } allocation_description { requested_bytes: 614400000 allocated_bytes: 614400000 allocator_name: "GPU_0_bfc" allocation_id: 6 ptr: 1109438113536 } } }` + "\n"
	killed    = "Memory cgroup out of memory: Killed process 4242 (python) total-vm:35462212kB, anon-rss:16512344kB\n"
	placement = "Executing op MatMul in device /job:localhost/replica:0/task:0/device:GPU:0\nExecuting op Unique in device /job:localhost/replica:0/task:0/device:CPU:0\n" +
		"Cannot assign a device for operation 'a/b': Could not satisfy explicit device specification '/device:GPU:0' because no supported kernel for GPU devices is available.\n"
)

// rare are fields of inputs that no case and no demo is.
var rare = map[place]bool{
	{"The report", "not_rerun"}: true,
	{"`failures[]`", "problem"}: true,
}

// traceOf is a run as our own trace, which has the memory events that the case
// of a trace lacks.
func traceOf(t *testing.T, file []byte) []byte {
	t.Helper()
	in, err := ingest.Open("x", bytes.NewReader(file), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	strs := new(event.Strings)
	w := chrome.NewWriter(&out, strs)
	if err := in.Emit(strs, w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
