package bridge

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/ingest"
)

const dump = `2023-05-11 10:21:07.316384: W tensorflow/tsl/framework/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00MiB (rounded to 3145728)requested by op Conv2D
2023-05-11 10:21:07.316400: I tensorflow/tsl/framework/bfc_allocator.cc:1025] Next region of size 4194304
2023-05-11 10:21:07.316401: I tensorflow/tsl/framework/bfc_allocator.cc:1045] InUse at 7f0000000000 of size 1048576 next 1
2023-05-11 10:21:07.316402: I tensorflow/tsl/framework/bfc_allocator.cc:1045] Free  at 7f0000100000 of size 1048576 next 2
2023-05-11 10:21:07.316403: I tensorflow/tsl/framework/bfc_allocator.cc:1045] InUse at 7f0000200000 of size 1048576 next 3
2023-05-11 10:21:07.316404: I tensorflow/tsl/framework/bfc_allocator.cc:1045] Free  at 7f0000300000 of size 1048576 next 18446744073709551615
2023-05-11 10:21:07.316405: I tensorflow/tsl/framework/bfc_allocator.cc:1058] Sum Total of in-use chunks: 2.00MiB
2023-05-11 10:21:07.316406: I tensorflow/tsl/framework/bfc_allocator.cc:1060] Total bytes in pool: 4194304 memory_limit_: 4194304 available bytes: 0 curr_region_allocation_bytes_: 8388608
2023-05-11 10:21:07.316407: I tensorflow/tsl/framework/bfc_allocator.cc:1066] Stats: 
Limit:                         4194304
InUse:                         2097152
MaxInUse:                      3145728
NumAllocs:                          10
MaxAllocSize:                  1048576

`

// openLog shows a text as the reader module hands it over, and says how many
// failures it tells.
func openLog(t *testing.T, s *Session, name, text string) int {
	t.Helper()
	return openLogAs(t, s, name, text, "log")
}

func openLogAs(t *testing.T, s *Session, name, text, origin string) int {
	t.Helper()
	in, err := ingest.Open(name, strings.NewReader(text), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	strs := new(event.Strings)
	w := timeline.NewWriter(&file, timeline.Options{Strings: strs})
	if err := errors.Join(in.Emit(strs, w), w.Close()); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "reset\t0\t"+name+"\t"+origin)
	if err := s.Feed(Current, file.Bytes()); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "finish\t0")
	return len(s.slots[Current].tl.OOMs())
}

func TestALogIsShownAsItsChunksAndItsFailure(t *testing.T) {
	s := NewSession()
	openLog(t, s, "x.log", dump)
	tl := s.slots[Current].tl
	if len(tl.OOMs()) != 1 || tl.Skipped() != 0 {
		t.Fatalf("%d failures, %d events skipped", len(tl.OOMs()), tl.Skipped())
	}
	p := tl.Pools()[0]
	if n := p.Now().InUse; n != 2<<20 {
		t.Errorf("%d bytes in use, want 2 MiB", n)
	}
	if got := s.slots[Current].state(); got != "out of memory" {
		t.Errorf("its state is %q", got)
	}
	d := ask(t, s, "details\toom\t"+itoa(tl.OOMs()[0].Time)+"\t0\t1\t")
	if d["verdict"] == nil || d["strip"] == nil {
		t.Errorf("explained as %v", d)
	}
}

// What a log does not tell is not made up: no times; and what it does tell is
// there: the hole that was too small, and what to do.
func TestALogShowsItsHoleAndAdviceAndNoTimes(t *testing.T) {
	s := NewSession()
	openLog(t, s, "x.log", dump)
	ask(t, s, "status")
	ask(t, s, "layout\taddress-0:0:200")
	first, last := s.slots[Current].span()
	window := itoa(first) + "\t" + itoa(last)
	lane := ask(t, s, "scales\t"+window)["lanes"].([]any)[0].(map[string]any)
	marks := lane["marks"].([]any)
	if len(marks) != 1 {
		t.Fatalf("marked as %v", lane)
	}
	m := marks[0].(map[string]any)
	// The first of two holes of 1 MiB in a region of 4 MiB.
	if m["label"] != "largest hole 1.00 MiB" || m["y"].(float64) < 80 || m["y"].(float64)+m["h"].(float64) > 160 {
		t.Errorf("the largest hole is marked as %v", m)
	}
	at := itoa(s.slots[Current].tl.OOMs()[0].Time)
	if d := ask(t, s, "details\toom\t"+at+"\t"+window+"\t"); len(d["advice"].([]any)) == 0 {
		t.Errorf("no advice in %v", d)
	}
	for _, tab := range []string{"live", "chunks", "peak", "oom"} {
		d := ask(t, s, "details\t"+tab+"\t"+at+"\t"+window+"\t")
		if note := d["note"].(string); strings.Contains(note, " at ") || strings.HasSuffix(note, "s") {
			t.Errorf("%s tells a time: %q", tab, note)
		}
	}
}

// A log that was saved as a timeline is still one.
func TestASavedLogHasNoTimesEither(t *testing.T) {
	s := NewSession()
	openLogAs(t, s, "x.tideline", dump, "file")
	if got := s.slots[Current].origin; got != "log" {
		t.Errorf("it is a %s", got)
	}
}

func TestTwoFailuresOfOneAllocatorFollowEachOther(t *testing.T) {
	s := NewSession()
	openLog(t, s, "x.log", dump+dump)
	tl := s.slots[Current].tl
	if len(tl.OOMs()) != 2 || tl.Skipped() != 0 || tl.Pools()[0].Now().InUse != 2<<20 {
		t.Errorf("%d failures, %d skipped, %d in use", len(tl.OOMs()), tl.Skipped(), tl.Pools()[0].Now().InUse)
	}
}

// TestRealLogsOpen opens the logs of the cases that are stored beside this
// checkout, if they are.
func TestRealLogsOpen(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/cases/0[1-9]-tf-bfc-*/input.log")
	if len(files) == 0 {
		t.Skip("no stored cases beside this checkout")
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSession()
		openLog(t, s, filepath.Base(f), string(b))
		tl := s.slots[Current].tl
		if len(tl.OOMs()) == 0 {
			t.Errorf("%s: no failure", f)
			continue
		}
		if n := tl.Skipped(); n > 0 {
			t.Errorf("%s: %d events contradict each other", f, n)
		}
		for _, tab := range []string{"live", "chunks", "peak", "oom", "log"} {
			ask(t, s, "details\t"+tab+"\t"+itoa(tl.OOMs()[0].Time)+"\t0\t1\t")
		}
	}
}

const torchMessage = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 25.31 GiB. GPU 0 has a total capacity of 79.25 GiB of which 24.65 GiB is free. Including non-PyTorch memory, this process has 54.59 GiB memory in use. Of the allocated memory 23.57 GiB is allocated by PyTorch, with 9.93 GiB allocated in private pools (e.g., CUDA Graphs), and 30.41 GiB is reserved by PyTorch but unallocated.\n"

// TestWhatAMessageDoesNotTellIsNoZero: a message counts bytes and lists no
// blocks, so that no tab may say that none are in use or free.
func TestWhatAMessageDoesNotTellIsNoZero(t *testing.T) {
	s := NewSession()
	if openLog(t, s, "x.txt", torchMessage) != 1 {
		t.Fatal("no failure")
	}
	at := itoa(s.slots[Current].tl.OOMs()[0].Time)
	ask(t, s, "status")
	for _, question := range []string{"details\toom", "details\tlive", "details\tchunks", "details\tpeak", "flame\tat"} {
		a := ask(t, s, question+"\t"+at+"\t0\t1000000\t\t")
		text := string(s.Ask(question + "\t" + at + "\t0\t1000000\t\t"))
		if strings.Contains(text, `"0 B`) || strings.Contains(text, " 0 B") || strings.Contains(text, "allocator 0") || strings.Contains(text, "stacks") {
			t.Errorf("%s makes up: %s", question, text)
		}
		if !strings.Contains(text, "What it says") {
			t.Errorf("%s does not say where more is told: %s", question, text)
		}
		if got := figureOf(t, a, "In use (reported)"); got != "23.57 GiB" {
			t.Errorf("%s: %s in use", question, got)
		}
	}
	v := ask(t, s, "details\toom\t"+at+"\t0\t1\t")["verdict"].(map[string]any)
	if text := v["text"].([]any)[0].(string); v["title"] != "Out of memory" || !strings.HasPrefix(text, "Fragmented: ") {
		t.Errorf("the verdict is %v", v)
	}
}

// TestACutDumpSaysThatItShowsAPart wherever it shows sums.
func TestACutDumpSaysThatItShowsAPart(t *testing.T) {
	lines := strings.SplitAfter(dump, "\n")
	cut := strings.Join(append(append([]string{}, lines[:4]...), lines[5:]...), "")
	for text, part := range map[string]bool{dump: false, cut: true} {
		s := NewSession()
		openLog(t, s, "x.log", text)
		ask(t, s, "status")
		at := itoa(s.slots[Current].tl.OOMs()[0].Time)
		for _, tab := range []string{"live", "chunks", "peak"} {
			d := ask(t, s, "details\t"+tab+"\t"+at+"\t0\t1\t")
			facts, _ := d["facts"].([]any)
			if strings.HasSuffix(d["note"].(string), listedWords) != part || (len(facts) == 2 && strings.HasSuffix(facts[0].(string), listedWords+".") && strings.HasPrefix(facts[1].(string), "The text itself counts 2.00 MiB in use, 3.00 MiB peak in use,")) != part {
				t.Errorf("a part: %v; %s says %q and %q", part, tab, d["note"], facts)
			}
			for _, x := range d["figures"].([]any) {
				if x.(map[string]any)["name"] == "Unused tails" {
					t.Errorf("%s knows of %v", tab, x)
				}
			}
		}
	}
}
