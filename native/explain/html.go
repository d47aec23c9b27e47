package explain

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	common "tideline/shared/analysis/reading"
)

//go:embed report.html
var reportHTML string

//go:embed report.css
var reportCSS string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{"bytes": event.FormatBytes, "lower": strings.ToLower}).Parse(reportHTML))

// page is what the template fills in. The page holds all it shows: no script,
// no resource of another place, and a policy that forbids both.
type page struct {
	Title, File, Kind, Version string
	Saved                      string // whose the readings are, where they are saved ones
	Redacted                   bool
	CSS                        template.CSS
	Policy                     string
	Cards                      []card
	Run                        *runPage
	Pictures                   []pictured
	Peaks                      []peakTable
	Findings                   []findingCard
	Settings                   []fieldRow
	Notes                      []string
}

// card is one failure or one reading.
type card struct {
	Title, Where, Verdict, Word, Why string
	Tone                             string // bad, warn, ok: the colour of its edge
	Figures                          []figure
	Bar                              *bar
	Map                              *chunkPicture
	Held                             []heldTable
	Lists                            []textList
	Need                             string
	Trials                           []trialRow
	TrialsTitle, TrialsNote          string
	Peaks                            []trialRow
	Facts                            []fieldRow
}

type figure struct{ Label, Value, Note string }

type textList struct {
	Title string
	Items []string
	Good  bool
}

type trialRow struct {
	Setting, Allocator, Spare, Peak string
	Own, Serves                     bool
}

type fieldRow struct{ Name, Value string }

// heldTable is who holds memory, with the part of the largest as a length.
type heldTable struct {
	Title string
	Rows  []heldRow
}

type heldRow struct {
	Name, Bytes, Blocks string
	Width               int    // of a hundred
	Class               string // of its category's colour; "" for none
}

type runPage struct {
	Summary, Why string
	Tone         string
	Allocators   []allocatorRow
	Lines        []string
	Card         *heldTable // where its memory was at the peak; nil where a failure tells it
}

type allocatorRow struct {
	Name, Device, Limit, InUse, Reserved, At, Note string
	Parts                                          []part
	Empty                                          int // of a thousand: the part of the bar that is not in use
}

// part is a piece of a bar of 1000 units.
type part struct {
	X, W        int
	Class, Name string
	Bytes       string
}

type findingCard struct {
	Severity, Title, Device string
	Text, Good              []string
	Worse                   string
}

// html writes the report as one page.
func (rep *report) html(w io.Writer, o *Options) error {
	file := rep.name
	if !strings.Contains(file, ", ") { // one alone is known by its name; where it lay is nobody's concern
		file = filepath.Base(file)
	}
	p := page{
		Title: "Memory report: " + file, File: file, Kind: rep.kind, Saved: rep.savedWords(), Version: o.Version, Redacted: rep.red != nil,
		CSS: template.CSS(reportCSS), //nolint:gosec // our own text
	}
	hash := sha256.Sum256([]byte(reportCSS))
	p.Policy = "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"
	if rep.run != nil {
		p.Run = rep.runPage()
		for _, f := range rep.run.Settings {
			p.Settings = append(p.Settings, fieldRow{f.Key, f.Value})
		}
	}
	for i := range rep.shownFailures() {
		if i == htmlFailures {
			p.Notes = append(p.Notes, fmt.Sprintf("%d more failures are not shown here; --json lists them all.", len(rep.failures)-i))
			break
		}
		p.Cards = append(p.Cards, rep.failureCard(i))
	}
	for i, r := range rep.readings {
		if i == htmlFailures {
			p.Notes = append(p.Notes, fmt.Sprintf("%d more readings are not shown here; --json lists them all.", len(rep.readings)-i))
			break
		}
		p.Cards = append(p.Cards, rep.readingCard(r))
	}
	for i := range rep.found {
		p.Findings = append(p.Findings, rep.found[i].card())
	}
	for _, n := range rep.notices {
		p.Notes = append(p.Notes, fmt.Sprintf("%d× from %s: %s asked for %s at first in vain; no error by itself.", n.Count, lineOf(n.File, n.Line), orUnnamed(n.Allocator), n.Requested.Text))
	}
	if rep.cut != "" {
		p.Notes = append(p.Notes, "Not all was read: "+rep.cut+".")
	}
	if rep.tl != nil {
		if err := rep.pictures(&p); err != nil {
			return err
		}
	}
	if err := reportPage.Execute(w, &p); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// htmlFailures is how many failures or readings a page shows in full.
const htmlFailures = 20

// toneOf is how bad a verdict is.
func toneOf(verdict string) string {
	switch verdict {
	case "timeline", "parse_only", "balanced", "no_growth", "explained", "done":
		return "ok"
	case "undetermined_truncated", "undetermined_no_state", "undetermined_no_request", "retryable", "":
		return "warn"
	}
	return "bad"
}

func (rep *report) failureCard(i int) card {
	f := &rep.failures[i]
	c := card{Title: "Out of memory", Where: rep.place(i), Tone: "bad"}
	if f.Reading == nil {
		c.Why = "The record of this failure cannot be read: " + f.recorded.Problem
		return c
	}
	why, open, next := f.words()
	if f.leak != "" {
		next = append([]string{f.leakAdvice()}, next...)
	}
	c.Title = orUnnamed(f.Allocator) + " ran out of memory"
	c.Verdict, c.Word, c.Why, c.Tone = f.headline(), string(f.Verdict), why, toneOf(string(f.Verdict))
	if f.leak != "" {
		c.Verdict, c.Why = "A leak filled the memory", f.leak+" "+common.Phrase(string(f.Verdict))+": "+why
	}
	c.Figures = f.figures()
	if f.ListComplete && len(f.Map) > 0 {
		c.Map = drawMap(f)
	} else if cells, from, to, exact := f.cells(100); cells != nil {
		c.Bar = drawBar(f, cells, from, to, exact)
	}
	c.Held = f.heldTables()
	c.list(pinTitle, f.pinLines(), false)
	c.list("Certain", f.certain(), false)
	c.list("What cannot be concluded", open, false)
	if f.reruns != nil {
		f.reruns.card(&c)
	}
	if f.replays != nil {
		c.replays(f.replays)
	}
	if f.reruns == nil || !f.reruns.helped() {
		c.list("What to do (not verified by a rerun)", next, false)
	}
	for _, v := range f.Values() {
		if v.Type != analysis.Null {
			c.Facts = append(c.Facts, fieldRow{v.Name, clip(strings.Trim(rawValue(v), `"`))})
		}
	}
	return c
}

// clip keeps a value that nobody reads whole from filling the page.
func clip(s string) string {
	const most = 400
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func (c *card) list(title string, items []string, good bool) {
	if len(items) > 0 {
		c.Lists = append(c.Lists, textList{title, items, good})
	}
}

// place is where in the input a failure stands.
func (rep *report) place(i int) string {
	f := &rep.failures[i]
	switch {
	case f.recorded != nil && f.recorded.Step >= 0:
		return fmt.Sprintf("at %s, in step %d (%d done)", duration(f.recorded.Time), f.recorded.Step+1, f.recorded.Step)
	case f.recorded != nil:
		return "at " + duration(f.recorded.Time)
	case f.Reading != nil && f.Line > 0:
		return lineOf(f.file, f.Line)
	}
	return ""
}

func (rep *report) readingCard(r *common.Reading) card {
	c := card{Title: r.Name, Verdict: r.Heading(), Word: r.Verdict, Why: r.Why, Tone: toneOf(r.Verdict)}
	if c.Verdict == "" { // nothing is judged: its name says more
		c.Title, c.Verdict, c.Word = "What the file tells", r.Name, ""
	}
	if r.Line > 0 {
		c.Where = lineOf(r.File, r.Line)
	}
	c.rows(r.Rows)
	if f := barOf(r); f != nil {
		cells, from, to, exact := f.cells(100)
		c.Bar = drawBar(f, cells, from, to, exact)
	}
	c.held(r)
	c.list("What cannot be concluded", r.Open, false)
	c.replays(r)
	c.list("What to do (not verified by a rerun)", r.Next, false)
	for _, f := range r.All() {
		if f.Value.Kind != common.NullKind {
			c.Facts = append(c.Facts, fieldRow{f.Name, clip(factText(f.Value))})
		}
	}
	return c
}

// rows are the figures, and the lists among them: several values of one label, of
// which a long one makes them sentences.
func (c *card) rows(rows []common.Row) {
	const long = 30 // runes; the page of the agent has the same
	for len(rows) > 0 {
		label, values, sentences := strings.TrimSpace(rows[0].Label), []string(nil), false
		for n := 0; len(rows) > 0 && (n == 0 || rows[0].Label == ""); n++ {
			if v := rows[0].Value; v != "" {
				values, sentences = append(values, v), sentences || len([]rune(v)) > long
			}
			rows = rows[1:]
		}
		switch {
		case len(values) > 1 && sentences && label != "":
			c.list(strings.ToUpper(label[:1])+label[1:], values, false)
		case len(values) > 0:
			c.Figures = append(c.Figures, figure{Label: label, Value: strings.Join(values, "; ")})
		}
	}
}

func factText(v common.Value) string {
	if v.Kind == common.TextKind {
		return v.Text
	}
	return string(v.AppendJSON(nil))
}

// replays shows what the recorded requests came to under other settings.
func (c *card) replays(r *common.Reading) {
	row := func(t *common.Trial) trialRow {
		x := trialRow{Setting: t.Setting, Allocator: t.Allocator, Peak: event.FormatBytes(t.Peak), Own: t.Own, Serves: t.Serves, Spare: "not known"}
		if t.Spare >= 0 {
			x.Spare = event.FormatBytes(t.Spare)
		}
		return x
	}
	for i := range r.Trials {
		c.Trials = append(c.Trials, row(&r.Trials[i]))
	}
	for i := range r.Peaks {
		c.Peaks = append(c.Peaks, row(&r.Peaks[i]))
	}
	serving, failing := split(r.Trials)
	switch {
	case len(serving) > 0:
		c.TrialsTitle = "Verified by replay: these settings would have served the request"
	case len(failing) > 0:
		c.TrialsTitle = "By replay: nothing that was tried would have served the request"
	default:
		c.TrialsTitle = "By replay"
	}
	var notes []string
	if r.Least > 0 {
		notes = append(notes, fmt.Sprintf("The request must shrink by %s to be served as things were.", exact(r.Least)))
	}
	if r.Short > 0 {
		notes = append(notes, fmt.Sprintf("What is live and the request are %s more than there is.", exact(r.Short)))
	}
	if r.Replayed != "" {
		notes = append(notes, r.Replayed)
	}
	if a := assumed(r.Trials, r.Peaks); a != "" {
		notes = append(notes, "Assumed: "+a+".")
	}
	c.TrialsNote = strings.Join(notes, " ")
}

// card shows what reruns of the workload came to.
func (v *verifier) card(c *card) {
	if v.unknown != "" {
		c.Need = "Nothing is verified: " + v.unknown + "."
		return
	}
	a := v.answer
	if a.Need != nil {
		c.Need = v.needs()
	}
	good := make([]string, len(a.Good))
	for i, t := range a.Good {
		good[i] = v.line(t)
	}
	c.list("Verified by rerun", good, true)
	if len(a.Good) == 0 {
		c.list("By rerun", []string{"Nothing that was tried gets it through."}, false)
	}
	var bad []string
	for _, t := range a.Bad {
		bad = append(bad, fmt.Sprintf("%s (fails in step %d)", shownChange(t), t.Steps+1))
	}
	c.list("Rerun as well, and no help", bad, false)
	if a.Cut {
		c.list("Not tried", []string{"More could have been tried: the reruns were ended."}, false)
	}
}

func (c *checked) card() findingCard {
	f := findingCard{Severity: c.Severity.String(), Title: c.Title, Device: c.Device, Text: c.Text}
	if c.base != nil {
		f.Good, f.Worse = c.outcome()
	}
	return f
}
