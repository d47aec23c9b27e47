package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"tideline/shared/ingest/snapshot/synthetic"
)

// ranksFolder makes snapshots of ranks: 3 has larger blocks, 4 is cut, and 10 is
// no snapshot.
func ranksFolder(t *testing.T) (files []string) {
	t.Helper()
	dir := t.TempDir()
	for i, rank := range []int{0, 1, 2, 3, 4, 10} {
		var b bytes.Buffer
		shape := synthetic.Shape{Requests: 2000, Live: 100, Most: 8 << 20, Seed: 3}
		if rank == 3 {
			shape.Most = 16 << 20
		}
		if _, err := synthetic.Write(&b, shape); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		switch rank {
		case 4:
			data = data[:len(data)/2]
		case 10:
			data = []byte("\x80\x04\x95")
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("run_rank_%d.pickle", rank)))
		if err := os.WriteFile(files[i], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// row is what the table says of the file of a rank.
func (p *page) row(rank int) []string {
	p.t.Helper()
	return eval[[]string](p, fmt.Sprintf(`[...document.querySelectorAll('#pane tr[data-file="run_rank_%d.pickle"] td')].map((x) => x.textContent)`, rank))
}

// TestRanksSideBySide: of the files of many ranks the first is shown at once, all
// are put side by side, and any is a click or a key away, alone or against another.
func TestRanksSideBySide(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 860)
	p.open(a.url)
	p.upload(ranksFolder(t)...)
	p.wait("the first", `tideline.current?.name === "run_rank_0.pickle"`)
	p.wait("all files", `tideline.side.answer && tideline.side.read === 6`)
	p.settled()
	p.pictured("all")
	if tab := eval[string](p, `tideline.details.tab`); tab != "files" {
		t.Errorf("the tab is %s", tab)
	}
	labels := eval[[]string](p, `[...document.querySelectorAll("#pane tbody td:first-child")].map((x) => x.textContent)`)
	if got := strings.Join(labels, ", "); got != "rank 0, rank 1, rank 2, rank 3, rank 4, rank 10" {
		t.Errorf("the order is %s", got)
	}
	peak := p.text("#fact-peak dd")
	if r := p.row(0); len(r) != 9 || r[2] != peak || r[4] != "same" || r[8] != "–" {
		t.Errorf("rank 0, whose peak is %s: %q", peak, r)
	}
	if r := p.row(3); !strings.HasPrefix(r[4], "+") || !eval[bool](p, `document.querySelector('#pane tr[data-file="run_rank_3.pickle"]').classList.contains("bad")`) {
		t.Errorf("rank 3: %q", r)
	}
	if r := p.row(4); !strings.HasPrefix(r[8], "Not all of it was read: ") || r[4] != "–" {
		t.Errorf("rank 4: %q", r)
	}
	if r := p.row(10); !strings.HasPrefix(r[8], "Cannot be read: ") || r[2] != "–" {
		t.Errorf("rank 10: %q", r)
	}
	if pane := p.text("#pane"); !strings.Contains(pane, "Rank 3 peaks at "+p.row(3)[2]) || strings.Contains(pane, "Rank 4 peaks") {
		t.Errorf("the words are %q", pane)
	}
	if said := p.text("#announce"); !strings.HasPrefix(said, "6 files read. Rank 3 peaks at ") {
		t.Errorf("announced is %q", said)
	}
	if n := eval[int](p, `document.querySelectorAll("#run-picker option[value^='file:']").length`); n != 6 {
		t.Errorf("%d files are in the menu", n)
	}

	// By its column the farthest is first; by Enter it is shown, and the row keeps
	// the keyboard; with Shift another is shown against it.
	p.click(`#pane th:nth-child(3) button`)
	if first := eval[string](p, `document.querySelector("#pane tbody tr").dataset.file`); first != "run_rank_3.pickle" {
		t.Errorf("the highest peak is that of %s", first)
	}
	p.do("show rank 3", chromedp.Evaluate[chromedp.Void](`document.querySelector("#pane tbody tr").focus()`), chromedp.KeyEvent("\r"))
	p.wait("rank 3", `tideline.current?.name === "run_rank_3.pickle" && !tideline.live`)
	p.settled()
	if held := eval[string](p, `document.activeElement.dataset.file + " " + document.activeElement.getAttribute("aria-current") + " " + tideline.details.tab`); held != "run_rank_3.pickle true files" {
		t.Errorf("the keyboard is at %s", held)
	}
	p.do("show rank 1 against it", chromedp.Evaluate[chromedp.Void](`document.querySelector('#pane tr[data-file="run_rank_1.pickle"]').dispatchEvent(new MouseEvent("click", {shiftKey: true, bubbles: true}))`))
	p.wait("both", `tideline.current?.name === "run_rank_1.pickle" && !document.querySelector("#versus").hidden`)
	p.settled()
	if a, b := p.text("#versus-a"), p.text("#versus-b"); a != "run_rank_1.pickle" || b != "run_rank_3.pickle" {
		t.Errorf("%q is shown against %q", a, b)
	}
	p.do("swap", chromedp.KeyEvent("x"))
	p.wait("rank 3 again", `tideline.current?.name === "run_rank_3.pickle"`)
	p.settled()
	if id := eval[string](p, `tideline.localId`); id != "file:run_rank_3.pickle" {
		t.Errorf("after the swap it is %s", id)
	}
	// The reason stays with the file when it is asked for.
	p.do("show rank 10", chromedp.Evaluate[chromedp.Void](`document.querySelector('#pane tr[data-file="run_rank_10.pickle"]').click()`))
	p.wait("why not", `document.querySelector("#toast").textContent.includes("run_rank_10.pickle")`)
	p.settled()
	if name := eval[string](p, `tideline.current.name`); name != "run_rank_3.pickle" {
		t.Errorf("%s is on screen", name)
	}
	for _, s := range [][2]int{{390, 844}, {1440, 900}} {
		p.do("resize", chromedp.EmulateViewport(int64(s[0]), int64(s[1])))
		p.wait(fmt.Sprintf("a page no wider than %d", s[0]), fmt.Sprintf("innerWidth === %[1]d && document.documentElement.scrollWidth <= %[1]d", s[0]))
	}
	p.dark()
	p.settled()
	p.screenshot("dark")
	if told := eval[[]string](p, `globalThis.told`); len(told) != 1 || !strings.Contains(told[0], "run_rank_10.pickle") {
		t.Errorf("the page says %q", told)
	}
}

// TestDroppedFolder: a folder's files are put side by side by their paths, with
// what else lies there told as such, and hidden files left alone.
func TestDroppedFolder(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 860)
	p.open(a.url)
	dir := t.TempDir()
	for i, file := range ranksFolder(t)[:3] {
		to := filepath.Join(dir, fmt.Sprintf("rank%d", i), "snapshot.pickle")
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"notes.md", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("what was tried\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []input.DispatchDragEventType{"dragEnter", "dragOver", "drop"} {
		p.do(string(step), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, input.DispatchDragEvent, input.DispatchDragEventParams{
				Type: step, X: 400, Y: 400, Data: &input.DragData{Items: []*input.DragDataItem{}, Files: []string{dir}, DragOperationsMask: 1},
			})
			return err
		}))
	}
	p.wait("all files", `tideline.side.answer && tideline.side.read === 4`)
	p.settled()
	rows := eval[[]string](p, `[...document.querySelectorAll("#pane tbody tr")].map((x) => [...x.children].slice(0, 2).map((c) => c.textContent).join(" "))`)
	if got := strings.Join(rows, ", "); got != "rank 0 rank0/snapshot.pickle, rank 1 rank1/snapshot.pickle, rank 2 rank2/snapshot.pickle, notes.md notes.md" {
		t.Errorf("the rows are %s", got)
	}
	if pane := p.text("#pane"); !strings.Contains(pane, "All 3 peak within 5 %") {
		t.Errorf("the words are %q", pane)
	}
}

// TestLogsOfRanks: logs are put side by side by the ranks of their names.
func TestLogsOfRanks(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 860)
	p.open(a.url)
	dir := t.TempDir()
	var files []string
	for i, name := range []string{"05-tf-bfc-2023-cifar-fragmented", "05-tf-bfc-2023-cifar-fragmented", "07-tf-bfc-2021-limit-55-mb", "17-torch-2023-others-hold-the-card"} {
		b, err := os.ReadFile(caseFile(t, name, "input.log"))
		if err != nil {
			b, err = os.ReadFile(caseFile(t, name, "input.txt"))
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("rank%d.log", i)))
		if err := os.WriteFile(files[i], b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.upload(files...)
	p.wait("all files", `tideline.side.answer && tideline.side.read === 4`)
	p.settled()
	p.screenshot("logs")
	pane := p.text("#pane")
	for _, want := range []string{"A request failed in all 4.", "Out of memory: fragmented", "532.88 MiB", "649.97 MiB", "3.06 GiB", "561.92 MiB", "2.00 KiB"} {
		if !strings.Contains(pane, want) {
			t.Errorf("the page does not say %q, but %q", want, pane)
		}
	}
	p.quiet()
}
