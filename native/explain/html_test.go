package explain

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/golden"
)

// hostile is a name that breaks out of whatever does not escape it.
const hostile = `</script></style></title><img src=x onerror=alert(1)>"'{{.}}&amp;` + "\x00\n\u2028"

// hostileRun has that name for everything that has a name.
func hostileRun(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	strs := new(event.Strings)
	w := timeline.NewWriter(&file, timeline.Options{Strings: strs})
	h := strs.ID(hostile)
	facts := strs.ID(event.Fields{{Key: "name", Value: hostile}, {Key: "kind", Value: hostile}, {Key: hostile, Value: hostile}}.Encode())
	m := event.ChunkMap{{Address: 256, Size: 1024, Chunks: []event.Chunk{{Address: 256, Size: 512, Requested: 500, InUse: true}, {Address: 768, Size: 512}}}}
	for i, e := range []event.Event{
		{Kind: event.Settings, Text: facts},
		{Kind: event.DeviceFacts, Text: facts},
		{Kind: event.AllocatorFacts, Size: 1024, Text: facts},
		{Kind: event.RegionAdd, Address: 256, Size: 1024, Requested: 1024},
		{Kind: event.StepBegin},
		{Kind: event.Alloc, Address: 256, Size: 512, Requested: 500, Op: h, Tensor: h},
		{Kind: event.Sample, Op: h, Size: 3},
		{Kind: event.StallBegin, Op: h, ID: 1},
		{Kind: event.StallEnd, Op: h, ID: 1},
		{Kind: event.Log, Text: h},
		{Kind: event.Annotation, Text: h},
		{Kind: event.OutOfMemory, Size: 768, Requested: 700, Op: h, Tensor: h, Text: strs.ID(m.Encode())},
		{Kind: event.Lost, Size: 1, Text: h},
		{Kind: event.End, Cause: uint8(event.EndFailed), Text: h},
	} {
		e.Time = int64(i) * 1000
		w.Emit(&e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

var (
	tags   = regexp.MustCompile(`<[a-zA-Z!/][^>]*>`)
	within = regexp.MustCompile(`^</?(!doctype html|html|head|body|meta|title|style|header|main|footer|section|article|h[1-4]|p|span|small|code|dl|dt|dd|div|figure|figcaption|ul|li|table|thead|tbody|tr|th|td|br|b|details|summary|svg|g|rect|path|text|image)([\s/>])`)
)

// check holds the rules of every page: its own tags alone, no script, nothing
// that is loaded, a policy that forbids both.
func checkPage(t *testing.T, page string) {
	t.Helper()
	for _, tag := range tags.FindAllString(page, -1) {
		if !within.MatchString(tag) {
			t.Errorf("tag %q", tag)
		}
		if strings.Contains(tag, " on") || strings.Contains(tag, "javascript:") || strings.Contains(tag, " style=") {
			t.Errorf("attribute in %q", tag)
		}
		for _, link := range []string{"src=", "href="} {
			if i := strings.Index(tag, link); i >= 0 && !strings.HasPrefix(tag[i+len(link):], `"data:image/png;base64,`) {
				t.Errorf("loads %.80q", tag)
			}
		}
	}
	for _, bad := range []string{"http://", "https://", "@import", "url(", "<script", "ZgotmplZ", "<no value>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if !strings.Contains(page, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; img-src data:; style-src &#39;sha256-`) {
		t.Errorf("no policy: %.600s", page)
	}
	if strings.Count(page, "<section") != strings.Count(page, "</section>") || !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
		t.Error("the page is not whole")
	}
}

// TestPageEscapesNames: a name is text, whatever it is made of.
func TestPageEscapesNames(t *testing.T) {
	page := explain(t, hostile, hostileRun(t), Options{HTML: true, Version: hostile})
	checkPage(t, page)
	if !strings.Contains(page, "&lt;img src=x onerror=alert(1)&gt;") {
		t.Error("the name is not on the page")
	}
	log := "2023-01-01 00:00:00: W bfc_allocator.cc:1] Allocator (</style><b>x) ran out of memory trying to allocate 1.00GiB (rounded to 1073741824)requested by op <img src=x>\n"
	checkPage(t, explain(t, hostile, []byte(log), Options{HTML: true}))
}

// TestPageShowsWhatIsKnown: verdict, figures, the map, what was verified, what
// cannot be concluded, the pictures and the settings.
func TestPageShowsWhatIsKnown(t *testing.T) {
	page := example(t, "leak", Options{HTML: true, Version: "1.2.3"})
	checkPage(t, page)
	for _, part := range []string{
		"A leak filled the memory", "<code>full</code>", "Verified by rerun", "keep= (nothing is kept): all 30 steps", "data:image/png;base64,",
		"107 chunks in 6 regions", "The largest blocks", "train.optimizer", "Tideline 1.2.3", "in which the request waited in vain", "What stands out",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	page = explain(t, "input.log", read(t, copies+"/05-tf-bfc-2023-cifar-fragmented/input.log"), Options{HTML: true})
	checkPage(t, page)
	for _, part := range []string{"<code>fragmented</code>", "largest hole, 532.88 MiB", "What cannot be concluded", "not verified", "largest_free_chunk_bytes"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
}

// TestPageOfEveryExampleIsWhole.
func TestPageOfEveryExampleIsWhole(t *testing.T) {
	for _, name := range []string{"oom-model", "fragmentation", "stall", "planned", "two-runs"} {
		checkPage(t, example(t, name, Options{HTML: true, NoReruns: true}))
	}
}

// TestReadingsDrawTheirBar: where the verdict rests on the usage bar of a log,
// text and page show it.
func TestReadingsDrawTheirBar(t *testing.T) {
	inputs, _ := golden.Case(t, "11-jax-2025-two-devices-payload")
	b := inputs["input.log"]
	if got := explain(t, "x", b, Options{Width: 104}); !strings.Contains(got, "\n  "+strings.Repeat("█", 99)+"·\n") {
		t.Errorf("no bar in\n%s", got)
	}
	if got := explain(t, "x", b, Options{HTML: true}); !strings.Contains(got, `aria-label="The pool as the log draws it"`) {
		t.Error("no bar in the page")
	}
}

// TestTailsOfTheBar: where the list of chunks does not tell what was asked for,
// the log's bar tells the tails.
func TestTailsOfTheBar(t *testing.T) {
	inputs, _ := golden.Case(t, "01-tf-bfc-2017-alexnet-small-limit")
	got := explain(t, "x", inputs["input.log"], Options{Width: 104, NoReruns: true})
	if !strings.Contains(got, strings.Repeat("█", 64)+strings.Repeat("▒", 6)+"\n") {
		t.Errorf("no tails in\n%s", got)
	}
}

// TestSentencesOfOneLabelAreAList: the second value of a label is no figure
// without one, and a recording in which nothing failed has no verdict.
func TestSentencesOfOneLabelAreAList(t *testing.T) {
	page := explain(t, "small-model.pickle", read(t, "../../examples/files/small-model.pickle"), Options{HTML: true})
	checkPage(t, page)
	if strings.Contains(page, "<dt></dt>") || !strings.Contains(page, "<h3>Segments kept by few bytes</h3><ul><li>") {
		t.Error("values without a label, or no list")
	}
	if strings.Contains(page, "<code>timeline</code>") {
		t.Error("a verdict on what was not judged")
	}
}
