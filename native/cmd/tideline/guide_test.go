package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tideline/shared/golden"
)

var update = flag.Bool("update", false, "write into the guide what the commands print")

const (
	guides    = "../../../docs/guide"
	leftOut   = "…" // a line that stands for any lines
	prompt    = "$ "
	guidesMin = 20 // the questions
)

// TestTheGuideShowsWhatIsPrinted runs every command of the guide, page by page,
// and compares what it prints with what the page shows. A page's commands share
// a folder, which holds the examples as a clone does.
func TestTheGuideShowsWhatIsPrinted(t *testing.T) {
	pages, _ := filepath.Glob(guides + "/*.md")
	abs, err := filepath.Abs(guides)
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, page := range pages {
		page = filepath.Join(abs, filepath.Base(page))
		text := contents(t, page)
		if !strings.Contains(text, "\n"+prompt+"tideline ") {
			continue
		}
		shown++
		t.Run(filepath.Base(page), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(examples)); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			now := session(t, text)
			if *update && now != text {
				if err := os.WriteFile(page, []byte(now), 0o644); err != nil { //nolint:gosec // documentation
					t.Fatal(err)
				}
			}
		})
	}
	if shown < guidesMin {
		t.Errorf("%d pages show a command and its output, want %d", shown, guidesMin)
	}
}

// session runs the commands of a page and returns the page with what they print
// now.
func session(t *testing.T, page string) string {
	t.Helper()
	var out, block []string
	inside := false
	for line := range strings.SplitSeq(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```") && !inside:
			inside = true
			out = append(out, line)
		case strings.HasPrefix(line, "```"):
			inside = false
			out = append(append(out, runBlock(t, block)...), line)
			block = nil
		case inside:
			block = append(block, line)
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// runBlock runs the commands of one fenced block. A block that does not begin
// with a command of ours stays as it is.
func runBlock(t *testing.T, block []string) []string {
	t.Helper()
	if len(block) == 0 || !strings.HasPrefix(block[0], prompt+"tideline ") {
		return block
	}
	var out []string
	for len(block) > 0 {
		command := block[0]
		end := 1 + slices.IndexFunc(block[1:], func(l string) bool { return strings.HasPrefix(l, prompt) })
		if end == 0 {
			end = len(block)
		}
		want := block[1:end]
		block = block[end:]
		got := printed(t, command)
		if !matches(want, got) {
			if !*update {
				t.Errorf("%s\nprints\n%s\nand not\n%s", command, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			want = renew(want, got)
		}
		out = append(append(out, command), want...)
	}
	return out
}

// printed is what a command writes to both of its outputs.
func printed(t *testing.T, command string) []string {
	t.Helper()
	args := strings.Fields(strings.TrimPrefix(command, prompt+"tideline "))
	code, stdout, stderr := tideline(t, args...)
	wrong := code == exitUsage && !strings.Contains(stderr, ".yaml: ") // else a page shows what a workload may not say
	if wrong || code == exitFailed && stderr == "" {
		t.Errorf("%s: exit code %d: %s", command, code, stderr)
	}
	text := strings.TrimSpace(stdout + stderr)
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if text == "" {
		return nil
	}
	return lines
}

// here is the one time that a command measures: a page may show any.
var here = regexp.MustCompile(`[0-9.]+(ns|µs|ms|s) here`)

func sameLine(shown, got string) bool {
	return shown == got || here.MatchString(shown) && here.ReplaceAllString(shown, "here") == here.ReplaceAllString(got, "here")
}

// matches says whether the lines got are those shown, where a line … stands for
// any number of lines.
func matches(shown, got []string) bool {
	for i, line := range shown {
		if line != leftOut {
			if len(got) == 0 || !sameLine(line, got[0]) {
				return false
			}
			got = got[1:]
			continue
		}
		for n := range len(got) + 1 {
			if matches(shown[i+1:], got[n:]) {
				return true
			}
		}
		return false
	}
	return len(got) == 0
}

// renew is what a page should show of the lines got: those that it showed, and
// … where it left lines out. Where lines beside a … changed, all of them are
// shown, for the author to shorten.
func renew(shown, got []string) []string {
	common := make([][]int, len(shown)+1)
	for i := range common {
		common[i] = make([]int, len(got)+1)
	}
	for i, line := range slices.Backward(shown) {
		for j := len(got) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if sameLine(line, got[j]) {
				common[i][j] = max(common[i][j], 1+common[i+1][j+1])
			}
		}
	}
	var out, gone, came []string
	flush := func() {
		if len(came) > 0 && len(gone) == 1 && gone[0] == leftOut {
			came = []string{leftOut}
		}
		out = append(out, came...)
		gone, came = nil, nil
	}
	i, j := 0, 0
	for i < len(shown) || j < len(got) {
		switch {
		case i < len(shown) && j < len(got) && sameLine(shown[i], got[j]) && common[i][j] == 1+common[i+1][j+1]:
			flush()
			out = append(out, shown[i]) // whose time stays
			i, j = i+1, j+1
		case j < len(got) && (i == len(shown) || common[i][j+1] >= common[i+1][j]):
			came = append(came, got[j])
			j++
		default:
			gone = append(gone, shown[i])
			i++
		}
	}
	flush()
	return out
}

func TestAGuidesBlockIsRenewed(t *testing.T) {
	for _, c := range []struct{ name, shown, got, want string }{
		{"new", "", "a b", "a b"},
		{"left out", "a … d", "a b c d", "a … d"},
		{"changed", "a b c", "a x c", "a x c"},
		{"changed beside what is left out", "a b … d", "a x y d", "a x y d"},
		{"changed apart", "a … d e", "a b c d f", "a … d f"},
	} {
		shown, got := strings.Fields(c.shown), strings.Fields(c.got)
		if now := strings.Join(renew(shown, got), " "); now != c.want {
			t.Errorf("%s: %q, want %q", c.name, now, c.want)
		}
		if !matches(strings.Fields(c.want), got) {
			t.Errorf("%s: %q does not stand for %q", c.name, c.want, c.got)
		}
	}
	if matches([]string{"a", leftOut}, []string{"b"}) || matches([]string{"a"}, []string{"a", "b"}) {
		t.Error("lines that differ match")
	}
}

// link is a Markdown link to a file, with or without an anchor.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)

// TestTheGuideHasNoDeadLinks: what a page links to is there, headings too, and
// the index names every page.
func TestTheGuideHasNoDeadLinks(t *testing.T) {
	pages, _ := filepath.Glob(guides + "/*.md")
	index := contents(t, guides+"/README.md")
	for _, page := range pages {
		text := contents(t, page)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(guides, filepath.FromSlash(m[1]))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(page), m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(contents(t, target)), m[2]) {
				t.Errorf("%s links to %s#%s: no such heading", filepath.Base(page), m[1], m[2])
			}
		}
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("README.md does not name %s", name)
		}
	}
}

// anchors are the names that a renderer gives to a page's headings.
func anchors(text string) []string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		if title := strings.TrimLeft(line, "#"); title != line {
			name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")
			all = append(all, regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(name, ""))
		}
	}
	return all
}

const guideFiles = "../../../examples/files"

// TestTheGuidesFilesAreReal: each is one of the real inputs, packed or not.
func TestTheGuidesFilesAreReal(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(golden.Cases(t), "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]bool{}
	for _, name := range cases {
		inputs[unpacked(t, name)] = true
	}
	for _, name := range fileNames(t) {
		if !inputs[unpacked(t, filepath.Join(guideFiles, name))] {
			t.Errorf("%s is none of the real inputs", name)
		}
	}
}

// TestTheGuidesFilesAreNamed: their README says where each comes from, and a
// page reads it.
func TestTheGuidesFilesAreNamed(t *testing.T) {
	readme, pages := contents(t, guideFiles+"/README.md"), ""
	all, _ := filepath.Glob(guides + "/*.md")
	for _, page := range all {
		pages += contents(t, page)
	}
	for _, name := range fileNames(t) {
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("README.md does not name %s", name)
		}
		if !strings.Contains(pages, "examples/files/"+name) {
			t.Errorf("no page reads %s", name)
		}
	}
}

func fileNames(t *testing.T) []string {
	t.Helper()
	files, err := os.ReadDir(guideFiles)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		if f.Name() != "README.md" && !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	return names
}

func unpacked(t *testing.T, name string) string {
	t.Helper()
	text := contents(t, name)
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return text
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, z); err != nil { //nolint:gosec // our own files
		t.Fatal(err)
	}
	return out.String()
}

func contents(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
