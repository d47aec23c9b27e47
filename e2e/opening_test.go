package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/golden"
	"tideline/shared/ingest"
	"tideline/shared/ingest/snapshot/synthetic"
)

// opened uploads a file and waits for what the page says of it.
func (p *page) opened(file string) {
	p.t.Helper()
	p.do("forget", chromedp.Evaluate[chromedp.Void](`tideline.told = null; document.querySelector("#toast").textContent = ""`))
	p.upload(file)
	p.wait("an answer to "+file, `tideline.told || document.querySelector("#toast").classList.contains("bad")`)
	p.settled()
}

func caseFile(t *testing.T, id, name string) string {
	t.Helper()
	return filepath.Join(golden.Cases(t), id, name)
}

// TestOpensWhatPeopleHave: files of every family, one after the other in one
// tab, packed ones too; each shows what the command says of it.
func TestOpensWhatPeopleHave(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1440, 900)
	p.open(a.url)
	for _, c := range []struct {
		name, file string
		zip        bool
		lanes      bool // a picture is expected
	}{
		{"bfc", caseFile(t, "05-tf-bfc-2023-cifar-fragmented", "input.log"), false, true},
		{"xla", caseFile(t, "09-jax-2024-dot-needs-2-gib", "input.log"), false, false},
		{"torch", caseFile(t, "19-torch-2025-three-processes", "input.txt"), false, false},
		{"snapshot", caseFile(t, "24-torch-snapshot-2025-small-model", "snapshot.pickle"), false, true},
		{"snapshot-gzip", caseFile(t, "24-torch-snapshot-2025-small-model", "snapshot.pickle"), true, true},
		{"rmm", caseFile(t, "27-rmm-2019-old-columns", "rmm.csv"), false, true},
		{"smi", caseFile(t, "29-smi-2019-held-but-no-process", "smi.txt"), false, false},
		{"xplane", caseFile(t, "34-tf-xspace-2020-alexnet-step", "*.pb"), false, true},
		{"pprof", caseFile(t, "37-jax-device-memory-pprof", "*.prof"), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, _ := filepath.Glob(c.file)
			if len(list) == 0 {
				files, _ := filepath.Glob(filepath.Join(filepath.Dir(c.file), "*"))
				t.Fatalf("%s is not there, but %v", c.file, files)
			}
			b, err := os.ReadFile(list[0])
			if err != nil {
				t.Fatal(err)
			}
			in, err := ingest.Open(filepath.Base(list[0]), bytes.NewReader(b), ingest.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if c.zip {
				b = packed(t, b)
			}
			p.t = t
			file := filepath.Join(t.TempDir(), c.name)
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			p.opened(file)
			pane := p.text("#pane")
			for _, r := range in.Readings {
				for _, want := range append([]string{r.Name, r.Why}, r.Next...) {
					if want := strings.Join(strings.Fields(want), " "); !strings.Contains(pane, want) {
						t.Errorf("%s: the page does not say %q, but %q", c.name, want, pane)
					}
				}
				for _, row := range r.Rows {
					if row.Value != "" && !strings.Contains(pane, row.Value) {
						t.Errorf("%s: the page does not say %s %q", c.name, row.Label, row.Value)
					}
				}
			}
			p.name = "Opening-" + c.name
			if c.lanes {
				p.pictured("opened")
			} else {
				p.screenshot("opened")
			}
			if saved, want := p.save(), eventsOf(t, in); !c.zip || want != 0 {
				if got, _, _ := hashOf(t, saved); got != want {
					t.Errorf("%s: another timeline was saved than the command makes", c.name)
				}
			}
		})
	}
	p.t = t
	p.quiet()
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// eventsOf is the hash of an input's timeline.
func eventsOf(t *testing.T, in *ingest.Input) uint64 {
	t.Helper()
	strs := new(event.Strings)
	h := eventhash.New(strs)
	if err := in.Emit(strs, h); err != nil {
		t.Fatal(err)
	}
	return h.Sum64()
}

// TestWhatDoesNotOpenLeavesThePage: the reader's words, and what was there stays.
func TestWhatDoesNotOpenLeavesThePage(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(a.url)
	p.opened(caseFile(t, "27-rmm-2019-old-columns", "rmm.csv"))
	name, lanes := p.text("#run-picker"), p.text("#lanes")
	for _, c := range []struct{ name, file, says string }{
		{"garbage.bin", "\x00\x01\x02\x03garbage", "garbage.bin is binary data. Tideline opens"},
		{"notes.txt", "nothing about memory is in here\n", "no out-of-memory text"},
		{"empty.log", "", "empty.log is an empty file"},
		{"evil.pickle", "\x80\x02cos\nsystem\nU\x02ls\x85R.", "REDUCE on os.system refused"},
		{"bomb.gz", string(packed(t, packed(t, []byte("x")))), "compressed twice"},
		{"job.yaml", "model: resnet50\nbatch: 8\n", "tideline run job.yaml"},
		{"cut.txt", "# tideline text 1\n0 device-facts text=\"kind=gpu\\n\"\nnonsense\n", "nonsense"},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		p.do("forget", chromedp.Evaluate[chromedp.Void](`document.querySelector("#toast").classList.remove("bad")`))
		p.upload(file)
		p.wait("the refusal of "+c.name, `document.querySelector("#toast").classList.contains("bad")`)
		p.settled()
		if said := p.text("#toast"); !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", c.name, said, c.says)
		}
		if p.text("#run-picker") != name || p.text("#lanes") != lanes || p.text("#tab-reading") == "MISSING" {
			t.Errorf("%s took the place of what was on screen: %s", c.name, p.text("#run-picker"))
		}
	}
	p.screenshot("refused")
	if !eval[bool](p, `!document.querySelector("#tab-reading").hidden && !document.querySelector("#save").disabled`) {
		t.Error("what the file before said is gone")
	}
}

// TestPastedTextIsReadByItsPieces: two reports in one text, by the keyboard.
func TestPastedTextIsReadByItsPieces(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.dark()
	p.open(a.url)
	var text bytes.Buffer
	for _, f := range []string{caseFile(t, "17-torch-2023-others-hold-the-card", "input.txt"), caseFile(t, "29-smi-2019-held-but-no-process", "smi.txt")} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	p.do("open the dialog", chromedp.KeyEvent("v"))
	p.wait("the dialog", `document.querySelector("#paste-dialog").open`)
	p.screenshot("dialog")
	p.do("paste", chromedp.SetValue(chromedp.CSS("#paste-text"), text.String()))
	p.click("#paste-open")
	p.wait("two readings", `document.querySelectorAll("#pane article.reading").length === 2`)
	p.settled()
	if tab := p.text("#tab-reading"); !strings.HasSuffix(tab, "2") {
		t.Errorf("the tab says %q", tab)
	}
	p.screenshot("two")
	p.do("another tab and back", chromedp.KeyEvent("9"))
	p.idle()
	p.do("back", chromedp.KeyEvent("e"))
	p.wait("the readings again", `document.querySelectorAll("#pane article.reading").length === 2`)
	p.quiet()
}

// TestOpenSnapshot opens a memory snapshot and looks at how long its picture
// takes. TIDELINE_SNAPSHOT_REQUESTS sets how many allocations and frees it has.
func TestOpenSnapshot(t *testing.T) {
	requests := 10_000
	if s := os.Getenv("TIDELINE_SNAPSHOT_REQUESTS"); s != "" {
		var err error
		if requests, err = strconv.Atoi(s); err != nil {
			t.Fatalf("TIDELINE_SNAPSHOT_REQUESTS is %q, not a number", s)
		}
	}
	path := filepath.Join(t.TempDir(), "made-up.pickle")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := synthetic.Write(f, synthetic.Shape{Requests: requests})
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(a.url)
	p.wait("the reader, before there is a file", `tideline.reader.up`)
	eval[bool](p, `(tideline.engine.addEventListener("grown", () => tideline.grownMs ??= performance.now() - tideline.openedAt), true)`)
	for i := range 3 {
		eval[bool](p, `(delete tideline.grownMs, delete tideline.firstPictureMs, true)`)
		before := workerCPU()
		p.upload(path)
		p.wait("the picture", `tideline.firstPictureMs`)
		worked := workerCPU() - before
		p.settled()
		p.wait("the reading", `document.querySelector("#pane article.reading")`)
		t.Logf("opening %d: %d requests, %d entries, %d bytes, %d events: first data %.0f ms, whole picture %.0f ms, workers' CPU %v", i+1, requests, entries, st.Size(),
			eval[int](p, `tideline.current.events`), eval[float64](p, `tideline.grownMs`), eval[float64](p, `tideline.firstPictureMs`), worked)
	}
	p.pictured("snapshot")
	p.quiet()
}

// TestPackedFiles: the browser unpacks; what is damaged, cut or packed in parts
// comes to what the command makes of it.
func TestPackedFiles(t *testing.T) {
	var made bytes.Buffer
	if _, err := synthetic.Write(&made, synthetic.Shape{Requests: 4000}); err != nil {
		t.Fatal(err)
	}
	whole := packed(t, made.Bytes())
	wrong := bytes.Clone(whole)
	wrong[len(wrong)-6] ^= 0x55 // of the checksum
	half := made.Len() / 2
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(a.url)
	p.wait("the reader, before there is a file", `tideline.reader.up`)
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"whole.pickle.gz", whole},
		{"cut.pickle.gz", whole[:len(whole)/2]},
		{"wrong-sum.pickle.gz", wrong},
		{"parts.pickle.gz", append(packed(t, made.Bytes()[:half]), packed(t, made.Bytes()[half:])...)},
	} {
		in, err := ingest.Open(c.name, bytes.NewReader(c.file), ingest.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		file := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(file, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		p.opened(file)
		if got, want := eval[string](p, `tideline.told.cut ?? ""`), in.Cut; got != want {
			t.Errorf("%s: cut %q, want %q", c.name, got, want)
		}
		if got, _, _ := hashOf(t, p.save()); got != eventsOf(t, in) {
			t.Errorf("%s: another timeline than the command makes", c.name)
		}
	}
	if cut := eval[int](p, `told.length`); cut != 1 {
		t.Errorf("%d warnings, want one of the file that is cut", cut)
	}
	p.do("what was expected", chromedp.Evaluate[chromedp.Void](`told.length = 0`))
	p.quiet()
}

// TestFiguresOverTimeAreLanes: what a loop or nvidia-smi prints again and again
// is a picture.
func TestFiguresOverTimeAreLanes(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(a.url)
	var monitor strings.Builder
	monitor.WriteString("timestamp, index, memory.used [MiB], memory.total [MiB]\n")
	for i := range 60 {
		for card := range 2 {
			fmt.Fprintf(&monitor, "2024/03/01 12:00:%02d.000, %d, %d MiB, 81559 MiB\n", i, card, 1000+(i*(card+1)*700)%60000)
		}
	}
	file := filepath.Join(t.TempDir(), "monitor.csv")
	if err := os.WriteFile(file, []byte(monitor.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, title string }{
		{"steps", caseFile(t, "38-torch-2022-eval-grows-linearly", "input.txt"), "max mem"},
		{"monitor", file, "GPU 1: memory.used"},
	} {
		list, _ := filepath.Glob(c.file)
		if len(list) == 0 {
			all, _ := filepath.Glob(filepath.Join(golden.Cases(t), "38-*", "*"))
			t.Fatalf("%s is not there, but %v", c.file, all)
		}
		p.opened(list[0])
		if !strings.Contains(p.text("#lanes"), c.title) {
			t.Errorf("%s: no row %q, but %q", c.name, c.title, p.text("#lanes"))
		}
		p.name = "Figures-" + c.name
		p.pictured("lanes")
	}
	p.quiet()
}

// TestSeveralFilesAtOnce: texts are told one after the other; of timelines and
// snapshots the second is what the first is compared with.
func TestSeveralFilesAtOnce(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(a.url)
	p.upload(caseFile(t, "17-torch-2023-others-hold-the-card", "input.txt"), caseFile(t, "29-smi-2019-held-but-no-process", "smi.txt"))
	p.wait("two readings", `document.querySelectorAll("#pane article.reading").length === 2`)
	p.settled()
	if name := p.text("#run-picker"); !strings.Contains(name, "input.txt and 1 more") {
		t.Errorf("the texts are called %q", name)
	}

	dir := t.TempDir()
	var files []string
	for i, n := range []int{3000, 2000} {
		file := filepath.Join(dir, fmt.Sprintf("snapshot-%d.pickle", i+1))
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = synthetic.Write(f, synthetic.Shape{Requests: n})
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p.upload(files...)
	p.wait("the base", `!document.querySelector("#versus").hidden`)
	p.settled()
	if a, b := p.text("#versus-a"), p.text("#versus-b"); a != "snapshot-1.pickle" || b != "snapshot-2.pickle" {
		t.Errorf("%q is compared with %q", a, b)
	}
	p.do("compare", chromedp.Evaluate[chromedp.Void](`tideline.details.choose("compare")`))
	p.settled()
	p.pictured("compared")
	p.screenshot("compared")
	if lines := eval[int](p, `new Set([...document.querySelectorAll("#pane .figure dd")].map((dd) => Math.round(dd.getBoundingClientRect().bottom))).size`); lines != 1 {
		t.Errorf("the figures stand on %d lines", lines)
	}
	p.do("swap", chromedp.KeyEvent("x"))
	p.wait("the other", `tideline.current.name === "snapshot-2.pickle"`)
	p.settled()
	if shown := eval[string](p, `tideline.told.readings[0].kind + tideline.localId`); shown != "pytorch-snapshot"+"file:snapshot-2.pickle" {
		t.Errorf("after the swap: %q", shown)
	}
	if !eval[bool](p, `document.querySelector("#rerun").disabled`) {
		t.Error("a snapshot of another program can be rerun")
	}
	p.screenshot("swapped")
	p.quiet()
}
