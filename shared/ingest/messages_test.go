package ingest

import (
	"strings"
	"testing"

	"tideline/shared/analysis/reading"
)

// messages are what PyTorch and those beside it printed where memory ran out,
// from Torch 7 to 2026, and what must be read out of each. The texts lie in
// testdata, each under its name. More readings than one follow in order.
var messages = map[string][]message{
	"2020-59778":         {{"driver_refused_despite_free", map[string]string{"requested_gib": "2.26", "free_gib": "3.03", "held_outside_torch_gib": "1.73"}}},
	"mgfn":               {{"fragmented", map[string]string{"free_gib": "0", "reserved_unallocated_gib": "2.3"}}},
	"mygirl":             {{"driver_refused_despite_free", map[string]string{"requested_mib": "32", "free_mib": "41.56", "this_process_gib": "3.44"}}},
	"16417-2019":         {{"driver_refused_despite_free", map[string]string{"allocated_mib": "8.57", "reserved_unallocated_mib": "4.68", "reserved_mib": "13.25"}}},
	"headless":           {{"full", map[string]string{"requested_mib": "20", "capacity_gib": "1.96", "free_mib": "2.88", "backend": `"CUDA"`}}},
	"04":                 {{"undetermined_no_state", map[string]string{"requested_mib": "null", "repeated": "2"}}},
	"04-alone":           {{"undetermined_no_state", map[string]string{"capacity_gib": "null"}}},
	"cutorch":            {{"undetermined_no_state", map[string]string{"backend": `"CUDA"`}}},
	"spconv":             {{"undetermined_no_state", nil}},
	"mps-gib":            {{"full", map[string]string{"allocated_gib": "9.57", "other_allocations_gib": "17.35", "user_limit_gib": "27.2", "requested_mib": "292.5", "truncated": "false"}}},
	"mps-bytes":          {{"full", map[string]string{"other_allocations_gib": "3.31"}}},
	"mps-too-big":        {{"limit_too_low", map[string]string{"requested_gib": "12"}}},
	"xpu-32":             {{"request_exceeds_device", map[string]string{"backend": `"XPU"`}}},
	"xpu-466":            {{"driver_refused_despite_free", map[string]string{"backend": `"XPU"`, "free_gib": "5.65"}}},
	"ipex":               {{"undetermined_no_state", map[string]string{"free_gib": "null", "reserved_mib": "176", "truncated": "false"}}},
	"ipex-4gb":           {{"limit_too_low", map[string]string{"requested_gib": "6.85", "capacity_gib": "15.56", "truncated": "false"}}},
	"hip-allowed":        {{"fragmented", map[string]string{"user_limit_gib": "1.05", "private_pools_mib": "17", "repeated": "2", "backend": `"HIP"`}}},
	"hip-287":            {{"driver_refused_despite_free", map[string]string{"device": "7"}}},
	"strix":              {{"other_process", map[string]string{"held_outside_torch_gib": "69.46"}}},
	"fairseq":            {{"driver_refused_despite_free", map[string]string{"requested_mib": "246", "reserved_unallocated_gib": "1.88"}}},
	"async-512k":         {{"fragmented_pool_or_cached", map[string]string{"requested_mib": "0.5", "unaccounted_gib": "0.83", "user_limit_is_none": "true"}}},
	"async-stamped":      {{"fragmented_pool_or_cached", map[string]string{"unaccounted_gib": "0.83", "user_limit_is_none": "true", "free_gib": "0"}}},
	"vllm-ranks":         {{"driver_refused_despite_free", map[string]string{"private_pools_mib": "40", "non_torch_this_process_gib": "0.57"}}},
	"nccl":               {{"undetermined_no_state", map[string]string{"requested_bytes": "608", "backend": `"NCCL"`}}},
	"nccl2":              {{"undetermined_no_state", map[string]string{"requested_bytes": "null", "backend": `"NCCL"`}}},
	"nccl-512m":          {{"undetermined_no_state", map[string]string{"requested_mib": "512"}}},
	"cpu":                {{"undetermined_no_state", map[string]string{"requested_gib": "12", "backend": `"CPU"`}}},
	"cpu-old":            {{"undetermined_no_state", map[string]string{"requested_gib": "72"}}},
	"cpu-errno":          {{"undetermined_no_state", map[string]string{"requested_gib": "1"}}},
	"cpu-nonsense":       {{"not_a_memory_problem", nil}},
	"html":               {{"fragmented", map[string]string{"requested_mib": "512"}}},
	"npu":                {{"full", map[string]string{"backend": `"NPU"`, "capacity_gib": "60.97", "reserved_gib": "59.02", "device": "0"}}},
	"npu-28":             {{"other_process", map[string]string{"held_outside_torch_gib": "18.07"}}},
	"comfy-report":       {{"undetermined_no_state", map[string]string{"requested_mib": "null", "repeated": "1"}}},
	"comfy-log":          {{"undetermined_no_state", map[string]string{"repeated": "2"}}},
	"dp":                 {{"fragmented", map[string]string{"device": "1"}}},
	"wsl":                {{"full", map[string]string{"this_process_gib": "null", "other_processes_gib": "null", "allocated_exceeds_capacity": "true", "truncated": "false"}}},
	"wsl-free":           {{"driver_refused_despite_free", map[string]string{"this_process_gib": "null", "non_torch_this_process_gib": "null"}}},
	"table-cell":         {{"full", map[string]string{"this_process_gib": "null", "allocated_gib": "11.32"}}},
	"cap":                {{"limit_too_low", map[string]string{"user_limit_gib": "2.25", "other_processes_gib": "null"}}},
	"cap2":               {{"limit_too_low", map[string]string{"user_limit_gib": "2.63", "allocated_mib": "954"}}},
	"other-and-this":     {{"full", map[string]string{"other_processes_gib": "[0.25]", "other_process_ids": "[2006998]", "this_process_gib": "18.17"}}},
	"container":          {{"full", map[string]string{"this_process_id": "2752205", "this_process_gib": "91.82", "device": "1"}}},
	"beginning-lost":     {{"undetermined_truncated", map[string]string{"requested_gib": "null", "capacity_gib": "14.56", "this_process_gib": "7.65", "truncated": "true"}}},
	"15":                 {{"request_exceeds_device", map[string]string{"requested_gib": "15", "capacity_gib": "14.56", "truncated": "false"}}},
	"2019-structureflow": {{"driver_refused_despite_free", map[string]string{"requested_gib": "8.13", "free_gib": "8.2", "reserved_unallocated_mib": "32.43"}}},
	"list":               {{"fragmented", map[string]string{"requested_mib": "764", "free_mib": "442.88", "allocated_gib": "42.4", "reserved_unallocated_gib": "3.24"}}},
}

type message struct {
	verdict string
	facts   map[string]string
}

// arenaMessages are those of ONNX Runtime, in its versions and wrappers.
var arenaMessages = map[string][]message{
	"win-conv": {{"undetermined_no_state", map[string]string{"node": `"347_nchwc"`, "op": `"Conv"`, "source_line": "330", "requested_rounded_bytes": "285081600"}}},
	"triton":   {{"undetermined_no_state", map[string]string{"node": `"Mul_8702"`, "requested_rounded_bytes": "2830172160", "requested_text": `"2.64GiB"`}}},
	"colab":    {{"undetermined_no_state", map[string]string{"node": `"MatMul_92_FusedMatMulAndScale"`, "requested_rounded_bytes": "8388608000"}}},
	"nonode":   {{"undetermined_no_state", map[string]string{"node": "null", "op": `"ReduceSum"`, "requested_rounded_bytes": "939524096"}}},
	"cudacall": {{"undetermined_no_state", map[string]string{"requested_rounded_bytes": "null", "device_ordinal": "0", "refused_call": `"cudaStreamCreateWithFlags(\u0026stream, cudaStreamNonBlocking)"`}}},
	"ragflow":  {{"arena_limit", map[string]string{"node": `"p2o.Conv.28"`, "available_bytes": "0", "requested_rounded_bytes": "175657216"}}},
	"cut":      {{"undetermined_truncated", map[string]string{"requested_rounded_bytes": "null", "source_line": "376"}}},
	"wrap":     {{"undetermined_no_state", map[string]string{"node": `"Conv_0"`, "requested_rounded_bytes": "13111296"}}},
}

// poolMessages are those of the RAPIDS memory manager.
var poolMessages = map[string][]message{
	"cupoch":         {{"undetermined_no_state", map[string]string{"pool": "true", "source_line": "179", "requested_bytes": "null"}}},
	"cudf":           {{"undetermined_no_state", map[string]string{"pool": "false", "source_line": "70"}}},
	"old":            {{"undetermined_no_state", map[string]string{"pool": "false", "source_line": "68"}}},
	"23":             {{"undetermined_no_state", map[string]string{"pool": "true", "source_line": "196"}}},
	"24":             {{"limit_too_low", map[string]string{"pool": "true", "requested_bytes": "8192", "pool_bytes": "4096", "pool_limit_bytes": "4096", "repeated": "2"}}},
	"2019":           {{"undetermined_no_state", map[string]string{"pool": "false"}}},
	"spdlog":         {{"undetermined_no_state", map[string]string{"pool": "true"}}},
	"upstream":       {{"undetermined_no_state", map[string]string{"pool": "false", "requested_bytes": "12884901888"}}},
	"full-or-pieces": {{"undetermined_no_state", map[string]string{"pool": "true", "requested_bytes": "536870912", "pool_bytes": "1879048192", "pool_limit_bytes": "2147483648"}}},
}

// named cuts a file of texts, each under a line "---- NAME".
func named(t *testing.T, file string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for part := range strings.SplitSeq("\n"+screenText(t, file), "\n---- ") {
		if name, text, ok := strings.Cut(part, "\n"); ok && part[0] != '\n' {
			out[name] = text + "\n"
		}
	}
	return out
}

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		file, kind string
		want       map[string][]message
	}{
		{"torch-messages.txt", "pytorch-oom-message", messages},
		{"ort-messages.txt", "ort-bfcarena", arenaMessages},
		{"rmm-messages.txt", "rmm-log", poolMessages},
	} {
		texts := named(t, c.file)
		if len(texts) != len(c.want) {
			t.Errorf("%d texts in %s, and %d are told of", len(texts), c.file, len(c.want))
		}
		for name, want := range c.want {
			for form, s := range ways(texts[name]) {
				t.Run(c.kind+"/"+name+"/"+form, func(t *testing.T) { checkMessage(t, s, c.kind, want) })
			}
		}
	}
}

func checkMessage(t *testing.T, s, kind string, want []message) {
	t.Helper()
	text, err := ReadText("x", strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	all := text.All()
	if len(all) != len(want) {
		t.Fatalf("%d readings, want %d", len(all), len(want))
	}
	for i, r := range all {
		checkReading(t, r, kind, want[i].verdict, want[i].facts)
		if r.Why == "" {
			t.Error("the reading does not say why")
		}
		sensible(t, r)
	}
}

// sensible holds the words of a reading to what can be true of any.
func sensible(t *testing.T, r *reading.Reading) {
	t.Helper()
	all := append(append([]string{r.Why}, r.Next...), r.Open...)
	for _, row := range r.Rows {
		all = append(all, row.Value)
	}
	for _, s := range all {
		for _, bad := range []string{"-0.", " -", "NaN", "Inf", "%!", "17179869184.00 GiB of"} {
			if strings.Contains(s, bad) {
				t.Errorf("%q in %q", bad, s)
			}
		}
	}
}

// TestMessagesCut: wherever a message breaks off, each figure read out of what
// is left is the whole message's, or not there, and one that lacks its state
// decides nothing.
func TestMessagesCut(t *testing.T) {
	texts := named(t, "torch-messages.txt")
	for name, want := range messages {
		s := strings.TrimRight(texts[name], "\n")
		whole, err := ReadText("x", strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		full := whole.All()[0]
		for n := range len(s) {
			text, err := ReadText("x", strings.NewReader(s[:n]))
			if err != nil {
				continue
			}
			for _, r := range text.All() {
				if r.Kind != "pytorch-oom-message" {
					continue
				}
				sensible(t, r)
				if r.Verdict != want[0].verdict && !strings.HasPrefix(r.Verdict, "undetermined_") {
					t.Errorf("%s cut after %q: %s", name, s[max(0, n-20):n], r.Verdict)
				}
				for _, fact := range []string{"requested_gib", "capacity_gib", "free_gib", "allocated_gib", "reserved_unallocated_gib", "this_process_gib", "private_pools_gib", "user_limit_gib", "other_allocations_gib"} {
					got, _ := r.Facts.Get(fact)
					want, _ := full.Facts.Get(fact)
					if g, w := string(got.AppendJSON(nil)), string(want.AppendJSON(nil)); g != "null" && g != w {
						t.Errorf("%s cut after %q: %s = %s, want %s or null", name, s[max(0, n-20):n], fact, g, w)
					}
				}
			}
		}
	}
}

// TestMessagesWrapped: a terminal that breaks a message at any place, within a
// word or a number, changes none of its figures, nor does a rank's mark before
// each of its lines.
func TestMessagesWrapped(t *testing.T) {
	texts := named(t, "torch-messages.txt")
	for name := range messages {
		s := strings.TrimRight(texts[name], "\n")
		if strings.Contains(s, "\n") || !strings.Contains(s, "llocate") {
			continue // of several lines, or without figures
		}
		for _, prefix := range []string{"", "[rank3]: "} {
			want := allFigures(t, prefix+s)
			for n := known(s); n < len(s); n++ {
				broken := prefix + s[:n] + "\n" + prefix + s[n:]
				if got := allFigures(t, broken); got != want {
					t.Fatalf("%s, %q, broken after %q:\n%s\nwant\n%s", name, prefix, s[max(0, n-20):n], got, want)
				}
			}
		}
	}
}

// known is where the words end that a message must have on one line.
func known(s string) int {
	for _, w := range []string{"(MPS allocated:", "memory: you", "ut of memory. "} {
		if i := strings.Index(s, w); i >= 0 {
			return i + len(w)
		}
	}
	return strings.Index(s, "total capac") + len("total capac")
}

// allFigures are all that the first reading of a text tells, but for the words on
// the form and the rows.
func allFigures(t *testing.T, s string) string {
	t.Helper()
	text, err := ReadText("x", strings.NewReader(s))
	if err != nil {
		return err.Error()
	}
	r := text.All()[0]
	var f reading.Facts
	for _, x := range r.Facts {
		if x.Name != "format_variant" {
			f.Set(x.Name, x.Value)
		}
	}
	return r.Verdict + string(reading.Object(f).AppendJSON(nil))
}
