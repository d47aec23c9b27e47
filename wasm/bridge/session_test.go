package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/wasm/rerun"
)

// ask asks and reads the answer as JSON, which every answer must be.
func ask(t *testing.T, s *Session, question string) map[string]any {
	t.Helper()
	b := s.Ask(question)
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("the answer to %q is no JSON: %v\n%s", question, err, b)
	}
	return v
}

// run computes fields in the other module's way and feeds what it makes.
func run(t *testing.T, s *Session, name, fields string) {
	t.Helper()
	var r rerun.Session
	if wrong := r.Start(fields); wrong != "" {
		t.Fatalf("the rerun did not start: %s", wrong)
	}
	ask(t, s, "rerun\t"+name+"\t")
	feed := func() {
		if err := s.Feed(Current, r.Drain()); err != nil {
			t.Fatal(err)
		}
	}
	for r.Work(1000) {
		r.Flush()
		feed()
	}
	r.End()
	feed()
	if a := ask(t, s, "finish\t0"); a["error"] != nil || a["warning"] != nil {
		t.Fatalf("the rerun failed: %v", a)
	}
}

const tiny = "model=lenet5\nmode=graph\ntrain=on\ntrain.optimizer=adam\nbatch=16\nsteps=4\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\n"

func TestEveryAnswerIsJSON(t *testing.T) {
	s := NewSession()
	for q := range questions { // of an empty session
		ask(t, s, q+"\t0\t1\t2\t3")
	}
	s = opened(t, made(t, 5000))
	_, last := s.slots[Current].span()
	s.Draw(Lanes, 400, 600, 1, 0, last, 0)
	end := itoa(last)
	list := []string{
		"status", "settings", "colors\t1", "scales\t0\t" + end, "at\t" + end, "hover\t200\t100\t" + end,
		"find\tdense", "peak\tmemory-0", "next-oom\t-1\t1", "nonsense",
	}
	for _, tab := range []string{"live", "chunks", "peak", "oom", "transfers", "compare", "twin", "log", "none"} {
		for i := range s.lanes {
			list = append(list, "details\t"+tab+"\t"+itoa(last/2)+"\t0\t"+end+"\t"+laneKey(&s.lanes[i]))
		}
	}
	for _, q := range list {
		ask(t, s, q)
	}
	for x := 0; x < 400; x += 13 { // whatever lies under the pointer
		for y := 0; y < 600; y += 11 {
			ask(t, s, "hover\t"+itoa(int64(x))+"\t"+itoa(int64(y))+"\t0")
		}
	}
}

func TestAnswersEscapeWhatNamesMayHold(t *testing.T) {
	for _, name := range []string{"a\"b\\c", "line\nbreak", "\x00\x1f\x7f", "bad \xff utf", "größe ✓", ""} {
		a := answer{}
		a.open().key("k").text(name).key("n").num(-5).key("f").real(0.25).key("nan").real(nan()).close()
		var v struct {
			K string
			N int64
			F float64
		}
		if err := json.Unmarshal(a.b, &v); err != nil {
			t.Fatalf("%q: %v in %s", name, err, a.b)
		}
		if want := strings.ToValidUTF8(name, "\ufffd"); v.K != want || v.N != -5 || v.F != 0.25 {
			t.Errorf("%q came back as %q", name, v.K)
		}
	}
}

func nan() float64 { z := 0.0; return z / z }

// TestPiecesOfAFileGiveTheSame checks that it does not matter how a file is
// cut when it is fed.
func TestPiecesOfAFileGiveTheSame(t *testing.T) {
	file := made(t, 20_000)
	whole := opened(t, file)
	for _, piece := range []int{1, 7, 1000, 65536} {
		if piece == 1 && testing.Short() {
			continue
		}
		s := NewSession()
		s.Ask("reset\t0\tfile\tfile")
		for b := file; len(b) > 0; {
			n := min(piece, len(b))
			part := s.Input(n)
			copy(part, b[:n]) // the same memory each time, as in the worker
			if err := s.Feed(Current, part); err != nil {
				t.Fatalf("pieces of %d: %v", piece, err)
			}
			b = b[n:]
		}
		if a := ask(t, s, "finish\t0"); a["error"] != nil || a["warning"] != nil {
			t.Fatalf("pieces of %d: %v", piece, a)
		}
		a, b := whole.slots[0].tl, s.slots[0].tl
		if a.Events() != b.Events() || a.Bytes() != b.Bytes() {
			t.Errorf("pieces of %d: %d events in %d bytes, want %d in %d", piece, b.Events(), b.Bytes(), a.Events(), a.Bytes())
		}
	}
}

func TestWhatIsNoTimelineIsRefusedAndTheOldOneStays(t *testing.T) {
	s := opened(t, made(t, 2000))
	before := s.slots[Current].tl
	s.Ask("reset\t0\tbad\tfile")
	err := s.Feed(Current, []byte("PK\x03\x04 this is a zip archive and no timeline at all, surely not one"))
	if err == nil {
		a := ask(t, s, "finish\t0")
		if a["error"] == nil {
			t.Fatal("a zip archive was taken for a timeline")
		}
	}
	s.Ask("restore\t0")
	if s.slots[Current].tl != before {
		t.Error("the timeline that was on screen is gone")
	}
}

func TestACutFileOpensUpToItsLastBlock(t *testing.T) {
	file := made(t, 200_000)
	s := NewSession()
	s.Ask("reset\t0\tcut\tfile")
	if err := s.Feed(Current, file[:len(file)*2/3]); err != nil {
		t.Fatal(err)
	}
	a := ask(t, s, "finish\t0")
	if a["warning"] == nil || a["events"].(float64) < 60_000 {
		t.Errorf("a cut file gave %v", a)
	}
	if got := s.slots[Current].state(); got != "cut short" {
		t.Errorf("its state is %q", got)
	}
}

func TestARerunBecomesCurrentAndTheOldRunTheBase(t *testing.T) {
	s := NewSession()
	run(t, s, "first", tiny)
	first := s.slots[Current]
	run(t, s, "second", tiny+"devices.0.growth=true\n")
	if s.slots[Base] != first || s.slots[Current].name != "second" {
		t.Fatal("the run before is not the base")
	}
	a := ask(t, s, "details\tcompare\t0\t0\t1\t")
	if a["figures"] == nil || len(a["facts"].([]any)) != 1 {
		t.Errorf("the comparison says %v", a["facts"])
	}
	s.Ask("swap")
	if s.slots[Current] != first {
		t.Error("swap did not swap")
	}
	s.Ask("drop-base")
	if s.slots[Base] != nil {
		t.Error("the base is still there")
	}
}

// A base belongs to the run that it became the base of.
func TestTheBaseGoesWithItsRun(t *testing.T) {
	twice := func() *Session {
		s := NewSession()
		run(t, s, "first", tiny)
		run(t, s, "second", tiny+"devices.0.growth=true\n")
		if s.slots[Base] == nil {
			t.Fatal("a rerun has no base")
		}
		return s
	}
	for name, open := range map[string]func(s *Session){
		"a file":          func(s *Session) { s.Ask("reset\t0\tother\tfile") },
		"a run elsewhere": func(s *Session) { s.Ask("reset\t0\tother\tlive") },
		"a log":           func(s *Session) { openLog(t, s, "x.log", dump) },
		"a fresh run":     func(s *Session) { s.Ask("rerun\tother\tfresh") },
	} {
		s := twice()
		open(s)
		if s.slots[Base] != nil {
			t.Errorf("%s is compared with a run of another story", name)
		}
	}
	s := twice()
	current, base := s.slots[Current], s.slots[Base]
	s.Ask("reset\t0\tbad\tfile")
	s.Ask("restore\t0")
	if s.slots[Current] != current || s.slots[Base] != base {
		t.Error("after a file that is none, A and B are not what they were")
	}
}

// Values carry the names of their categories, and all of them are in the legend.
func TestTheLegendAndItsValuesAgree(t *testing.T) {
	s := NewSession()
	s.Ask("reset\t0\tlive\tlive")
	sl := s.slots[Current]
	for i, c := range []event.Category{event.Activation, event.Parameter, event.Temporary} { // as they arrive
		sl.tl.Append([]event.Event{{Kind: event.Alloc, Device: 1, Address: uint64(i+1) << 20, Size: 100 << i, Requested: 100 << i, Category: c, Time: int64(i)}})
		status := ask(t, s, "status")
		lane := status["lanes"].([]any)[0].(map[string]any)
		values := ask(t, s, "at\t"+itoa(int64(i)))["lanes"].(map[string]any)[lane["key"].(string)].(map[string]any)["legend"].(map[string]any)
		legend := lane["legend"].([]any)
		if len(legend) != i+1 || len(values) != i+1 {
			t.Fatalf("%d categories: %d in the legend, %d values", i+1, len(legend), len(values))
		}
		for _, x := range legend {
			if _, ok := values[x.(map[string]any)["name"].(string)]; !ok {
				t.Errorf("%v has no value in %v", x, values)
			}
		}
		if got := values[c.String()]; got != float64(int(100)<<i) {
			t.Errorf("%v holds %v", c, got)
		}
	}
}

func TestSettingsOfARerunComeBack(t *testing.T) {
	s := NewSession()
	run(t, s, "x", tiny+"seed=7\n")
	f, err := event.ParseFields(ask(t, s, "settings")["fields"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if f.Text("seed") != "7" || f.Text("batch") != "16" || f.Text("model") != "lenet5" {
		t.Errorf("settings came back as %v", f)
	}
}

func TestOutOfMemoryIsAFindingAndExplained(t *testing.T) {
	s := NewSession()
	run(t, s, "oom", strings.Replace(tiny, "batch=16", "batch=6000", 1))
	ooms := s.slots[Current].tl.OOMs()
	if st := ask(t, s, "status")["slots"].([]any)[0].(map[string]any); st["failure"] != float64(ooms[len(ooms)-1].Time) {
		t.Errorf("the run failed at %v, want %d", st["failure"], ooms[len(ooms)-1].Time)
	}
	if got := s.slots[Current].state(); got != "out of memory" {
		t.Fatalf("ended with %v", got)
	}
	at := ask(t, s, "next-oom\t-1\t1")["t"].(float64)
	d := ask(t, s, "details\toom\t"+itoa(int64(at))+"\t0\t1\t")
	v := d["verdict"].(map[string]any)
	if !strings.HasPrefix(v["title"].(string), "Out of memory: ") || d["strip"] == nil {
		t.Errorf("explained as %v", d)
	}
}

// TestALiveStreamSaysWhereToGoOn feeds whole blocks, as messages bring them.
func TestALiveStreamSaysWhereToGoOn(t *testing.T) {
	file := made(t, 100_000)
	s := NewSession()
	s.Ask("reset\t0\tlive\tlive")
	first, _, err := block.Next(file[timeline.HeaderSize:])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Feed(Current, first); err != nil {
		t.Fatal(err)
	}
	got := ask(t, s, "seq\t0")["seq"].(float64)
	if n := s.slots[Current].tl.Events(); got != float64(n) || n == 0 {
		t.Errorf("%d events, but to go on from %v", n, got)
	}
}

func TestDrawPaintsEveryPixelAndThenOnlyWhatChanged(t *testing.T) {
	s := opened(t, made(t, 5000))
	_, last := s.slots[Current].span()
	if r := s.Draw(Lanes, 400, 600, 1, 0, last, 0); len(r) == 0 {
		t.Fatal("nothing was drawn")
	}
	pix := s.Pixels(Lanes)
	for i := 3; i < len(pix); i += 4 {
		if pix[i] != 255 {
			t.Fatalf("pixel %d is not opaque", i/4)
		}
	}
	if r := s.Draw(Lanes, 400, 600, 1, 0, last, 0); len(r) != 0 {
		t.Errorf("nothing changed, yet %d pieces were drawn", len(r))
	}
	if r := s.Draw(Minimap, 400, 40, 1, 0, last, 0); len(r) == 0 {
		t.Error("the minimap was not drawn")
	}
	for _, bad := range [][2]int{{0, 10}, {10, -1}, {1 << 30, 1 << 30}} {
		if r := s.Draw(Lanes, bad[0], bad[1], 1, 0, last, 0); r != nil {
			t.Errorf("a picture of %v was drawn", bad)
		}
	}
}

func TestCursorStepsFromChangeToChange(t *testing.T) {
	s := NewSession()
	run(t, s, "x", tiny)
	seen := int64(0)
	at := int64(-1)
	for {
		a := ask(t, s, "step\t"+itoa(at)+"\t1\tmemory-0")
		next, ok := a["t"].(float64)
		if !ok || seen > 200 {
			break
		}
		if int64(next) <= at {
			t.Fatalf("the step after %d leads to %d", at, int64(next))
		}
		at = int64(next)
		seen++
	}
	if seen < 10 {
		t.Fatalf("only %d changes were found", seen)
	}
	back := ask(t, s, "step\t"+itoa(at)+"\t-1\tmemory-0")
	if b, ok := back["t"].(float64); !ok || int64(b) >= at {
		t.Errorf("the step before %d leads to %v", at, back["t"])
	}
}
