package redact

import (
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"2.71 GiB are free and 585.94 MiB were asked for.", "2.71 GiB are free and 585.94 MiB were asked for."},
		{"results of encoder/attention_3/Softmax that nobody let go", "results of scope-1/op-1 that nobody let go"},
		{"/home/alice/train.py:12", "file-1"},
		{`C:\Users\alice\run.log`, "file-1"},
		{"on host node17.cluster.example.org", "on host host-1"},
		{"at 10.0.12.7", "at host-1"},
		{"process 4711 holds 3.66 GiB, process 4711 again", "process process-1 holds 3.66 GiB, process process-1 again"},
		{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"},
		{"PYTORCH_CUDA_ALLOC_CONF=secret_thing:128", "name-1"},
		{"GPU_0_bfc on /job:localhost/replica:0/task:0/device:GPU:0", "GPU_0_bfc on /job:localhost/replica:0/task:0/device:GPU:0"},
		{"/job:acme/replica:0/task:0/device:GPU:0", "file-1"},
		{"1m2.5s at 0x7f00ab, 80.8 % of 3x224", "1m2.5s at 0x7f00ab, 80.8 % of 3x224"},
		{"alice@example.com", "host-1"},
		{"", ""},
	} {
		r := New()
		got := r.Text(c.in)
		got = strings.ReplaceAll(got, "scope-1/scope-2/op-1", "scope-1/op-1")
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

// TestPseudonymsAreConsistent: one name, one pseudonym; scopes are shared.
func TestPseudonymsAreConsistent(t *testing.T) {
	r := New()
	a, b := r.Name(Op, "tower/proj/MatMul"), r.Name(Op, "tower/proj/BiasAdd")
	if a != "scope-1/scope-2/op-1" || b != "scope-1/scope-2/op-2" || r.Name(Op, "tower/proj/MatMul") != a || r.Text("by tower/proj/MatMul.") != "by "+a+"." {
		t.Errorf("%q, %q, %q", a, b, r.Text("by tower/proj/MatMul."))
	}
	if got := r.Foreign("the quick brown foxes jumped over everything"); got != LeftOut {
		t.Errorf("a foreign sentence became %q", got)
	}
}

func TestReadings(t *testing.T) {
	var f reading.Facts
	f.Int("pid", 4711)
	f.Text("name", "python-secret")
	f.Set("processes", reading.Object(reading.Facts{{Name: "mallory", Value: reading.Int(3)}}))
	f.Ints("other_process_ids", []int64{815, 4711})
	in := reading.Reading{Kind: "nvidia-smi", Name: "nvidia-smi", Why: "process 4711 of python-secret holds 3 GiB", Facts: f, Rows: []reading.Row{{Label: "process 815", Value: "2.02 GiB"}}}
	out := string(New().Reading(&in).AppendJSON(nil)) + New().Reading(&in).Rows[0].Label
	for _, gone := range []string{"4711", "815", "python-secret", "mallory"} {
		if strings.Contains(out, gone) {
			t.Errorf("%s survives in %s", gone, out)
		}
	}
	for _, stays := range []string{`"pid":1`, "3 GiB", "nvidia-smi"} {
		if !strings.Contains(out, stays) {
			t.Errorf("%s lacks %s", out, stays)
		}
	}
	if in.Rows[0].Label != "process 815" {
		t.Error("the original was changed")
	}
}

// TestEvents: what names are in them goes, figures and our own words stay.
func TestEvents(t *testing.T) {
	from, to := new(event.Strings), new(event.Strings)
	var got []event.Event
	sink := New().Events(from, to, event.SinkFunc(func(e *event.Event) { got = append(got, *e) }))
	for _, e := range []event.Event{
		{Kind: event.Settings, Text: from.ID("name=acme-llm\nmodel=resnet50\nbatch=32\ndevices.0.growth=true\nkeep=acme/*\n")},
		{Kind: event.DeviceFacts, Text: from.ID("name=/device:GPU:0\nfull_name=/job:acme/task:0/device:GPU:0\nkind=gpu\ntotal=17179869184\nuuid=GPU-8f3c\n")},
		{Kind: event.AllocatorFacts, Size: 9, Text: from.ID("name=GPU_0_bfc\nkind=bfc\ngrowth=true\ngroup.1=acme/wq\n")},
		{Kind: event.Alloc, Size: 7, Op: from.ID("acme/wq"), Tensor: from.ID("main /srv/acme/x.py:1\nwq y.py:2"), Category: event.Parameter},
		{Kind: event.StageBegin, Op: from.ID("map"), ID: 1},
		{Kind: event.Log, Text: from.ID("alice did it")},
		{Kind: event.Annotation, Text: from.ID("a remark")},
		{Kind: event.OutOfMemory, Size: 5, Op: from.ID("acme/wq"), Text: from.ID("r 100 512\nf 100 512 0\n")},
		{Kind: event.End, Text: from.ID("killed by alice")},
	} {
		sink.Emit(&e)
	}
	var all strings.Builder
	for i := range to.Len() {
		all.WriteString(to.At(event.StringID(i)) + "\n")
	}
	for _, gone := range []string{"acme", "alice", "wq", ".py", "remark", "8f3c"} {
		if strings.Contains(all.String(), gone) {
			t.Errorf("%s survives in %q", gone, all.String())
		}
	}
	for _, stays := range []string{"model=resnet50", "batch=32", "devices.0.growth=true", "total=17179869184", "name=GPU_0_bfc", "group.1=scope-1/op-1", "map", "r 100 512"} {
		if !strings.Contains(all.String(), stays) {
			t.Errorf("%q lacks %s", all.String(), stays)
		}
	}
	if len(got) != 7 || got[3].Size != 7 || got[3].Category != event.Parameter || got[3].Tensor != 0 || got[3].Op != got[5].Op {
		t.Errorf("%+v", got)
	}
}

// FuzzText: no word that is not ours survives, whatever stands around it.
func FuzzText(f *testing.F) {
	f.Add("free ", "/x: 3 GiB")
	f.Add("pid ", "=1")
	f.Add("\"", "\\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		const name = "Zanzibarquux"
		r := New()
		for _, got := range []string{r.Text(before + name + after), r.Foreign(before + name + after), r.Sized("1 MiB " + before + name + after), r.Name(Op, before+name+after)} {
			if strings.Contains(got, name) {
				t.Fatalf("%q keeps the name: %q", before+name+after, got)
			}
		}
	})
}

// TestAFigureStaysBeforeAName: sizes are kept and only the names behind them go.
func TestAFigureStaysBeforeAName(t *testing.T) {
	r := New()
	const kept = "12.50 MiB idle of 20.00 MiB, kept by 1 block of 7.50 MiB"
	for _, c := range [][2]string{
		{kept + ", _my_group secret.py:113", kept + ", op-1"},
		{kept + ", _my_group secret.py:113, and more", kept + ", op-2"},
		{kept + ", _my_group secret.py:113", kept + ", op-1"},
		{kept, kept},
		{"the quick brown foxes jumped over 12.50 MiB", LeftOut},
		{"12 quick brown foxes jumped over everything", LeftOut},
	} {
		if got := r.Sized(c[0]); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
	}
	if got := r.Foreign("ONNX Runtime's arena for Cuda"); got != "ONNX Runtime's arena for Cuda" {
		t.Errorf("the title becomes %q", got)
	}
}
