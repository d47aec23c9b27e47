package rerun

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tideline/examples"
	"tideline/protocol/api"
	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
	"tideline/shared/zoo"
)

const tiny = "model=lenet5\nmode=graph\ntrain=on\ntrain.optimizer=adam\nbatch=16\nsteps=4\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\n"

func fields(t *testing.T, text string) event.Fields {
	t.Helper()
	f, err := event.ParseFields(text)
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return f
}

// TestEveryDemoIsAnExample holds the demos to the example workloads, field by
// field.
func TestEveryDemoIsAnExample(t *testing.T) {
	const most = 12
	if len(demos) > most {
		t.Errorf("%d demos are more than a menu can bear (%d)", len(demos), most)
	}
	for _, d := range demos {
		f, err := event.ParseFields(d.fields)
		if err != nil {
			t.Fatalf("%s: %v", d.id, err)
		}
		got, problems := api.FromFields(f)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", d.id, problems)
		}
		text, err := examples.Files.ReadFile(d.id + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		want, problems := workfile.Read(text, launch.Known())
		if len(problems) > 0 {
			t.Fatalf("%s: %v", d.id, problems)
		}
		got.Defaults()
		want.Defaults()
		if g, w := got.Fields().Encode(), want.Fields().Encode(); g != w {
			t.Errorf("the demo %s is not its example:\n%s\nwant\n%s", d.id, g, w)
		}
	}
}

// TestARerunIsTheRun checks that the bytes handed out, however often they are
// flushed, hold the very events that the run emits when nobody looks.
func TestARerunIsTheRun(t *testing.T) {
	w, problems := api.FromFields(fields(t, tiny))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	table := new(event.Strings)
	want := eventhash.New(table)
	if _, err := launch.Run(*w, launch.Options{Strings: table, Sink: want}); err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int{1, 100, 1 << 20} {
		var s Session
		var file bytes.Buffer
		if wrong := s.Start(tiny); wrong != "" {
			t.Fatal(wrong)
		}
		for s.Work(budget) {
			s.Flush()
			file.Write(s.Drain())
		}
		if f := fields(t, s.End()); f.Text("reason") != "done" || f.Text("note") != "" {
			t.Errorf("ended with %v", f)
		}
		file.Write(s.Drain())
		st, err := timeline.NewStream(&file)
		if err != nil {
			t.Fatal(err)
		}
		got := eventhash.New(st.Strings())
		if err := st.Replay(got); err != nil {
			t.Fatal(err)
		}
		if len(st.Damage()) > 0 || !st.Complete() {
			t.Errorf("damage %v, complete %v", st.Damage(), st.Complete())
		}
		if got.Sum64() != want.Sum64() {
			t.Errorf("budget %d: the rerun's events are not the run's", budget)
		}
	}
}

func TestBadSettingsNameTheirField(t *testing.T) {
	for text, path := range map[string]string{
		tiny + "batchh=3\n": "batchh",
		tiny + "devices.0.growth=true\ndevices.0.memory_limit=64MiB\n": "devices.0",
		strings.Replace(tiny, "lenet5", "lenet6", 1):                   "model",
		strings.Replace(tiny, "lab-256m", "lab-257m", 1):               "devices.0.preset",
		strings.Replace(tiny, "batch=16", "batch=none", 1):             "batch",
	} {
		var s Session
		answer := s.Start(text)
		found := false
		for _, f := range fields(t, answer) {
			found = found || strings.HasSuffix(f.Key, ".path") && strings.HasPrefix(f.Value, path)
		}
		if !found || s.Check(text) != answer {
			t.Errorf("%s: started with %q, checked with %q", path, answer, s.Check(text))
		}
		if s.Work(1) {
			t.Errorf("%s: it works all the same", path)
		}
	}
	var s Session
	if a := s.Start("no equals sign"); !strings.HasPrefix(a, "error=") {
		t.Errorf("answered %q", a)
	}
	if a := s.Check(tiny); a != "" {
		t.Errorf("a sound workload is refused: %s", a)
	}
}

func TestOutOfMemoryIsAFinding(t *testing.T) {
	var s Session
	s.Start(strings.Replace(tiny, "batch=16", "batch=6000", 1))
	for s.Work(1000) {
	}
	if f := fields(t, s.End()); f.Text("reason") != "out of memory" || f.Text("message") == "" {
		t.Errorf("ended with %v", f)
	}
}

func TestARunCanBeStopped(t *testing.T) {
	var s Session
	s.Start(strings.Replace(tiny, "steps=4", "steps=100000", 1))
	s.Work(10)
	if f := fields(t, s.End()); f.Text("note") == "" || f.Int("steps") >= 100000 {
		t.Errorf("stopped with %v", f)
	}
	if s.Work(10) {
		t.Error("it still works")
	}
	if a := s.End(); !strings.HasPrefix(a, "error=") {
		t.Errorf("ended twice: %q", a)
	}
}

func TestInfoNamesWhatThereIs(t *testing.T) {
	var s Session
	f := fields(t, s.Info())
	for _, key := range []string{"models.1.layers", "models.21.layers", "presets.0.title", "demos.0.fields"} {
		if f.Text(key) == "" {
			t.Errorf("no %s", key)
		}
	}
}

func TestLayersAreThoseOfTheModels(t *testing.T) {
	for _, m := range zoo.Names() {
		p, err := zoo.Program(m, zoo.Options{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range p.Variables {
			if name, _, _ := strings.Cut(p.Variables[i].Name, "/"); !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
		if got := layers(m); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", m, got, want)
		}
	}
}

func BenchmarkRerun(b *testing.B) {
	text := strings.Replace(tiny, "steps=4", "steps=500", 1)
	var events uint64
	for b.Loop() {
		var s Session
		s.Start(text)
		for s.Work(1000) {
			s.Drain()
		}
		events = s.writer.Next()
		s.End()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}
