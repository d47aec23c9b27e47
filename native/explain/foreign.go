package explain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/shared/analysis"
	common "tideline/shared/analysis/reading"
	"tideline/shared/blame"
	"tideline/shared/ingest"
	"tideline/shared/ingest/bfclog"
)

// explainPasted explains a text of any kind, or several pasted together: the
// dumps of a BFC allocator with all that is known about them, and everything
// else in the common form.
func explainPasted(name string, kind ingest.Kind, r io.Reader, w io.Writer, o Options) error {
	in, err := ingest.Open(name, r, ingest.Limits{}) // keeps the history that holders and replays need
	if u, ok := errors.AsType[*ingest.UnsupportedError](err); ok {
		u.Kind = kind
		return u
	}
	if err != nil {
		return err
	}
	text := in.Text
	if text == nil { // cannot happen: the caller looked at the beginning
		return &ingest.UnsupportedError{Name: name, Kind: kind}
	}
	rep := report{name: name, kind: textKind(text), readings: text.Readings, cut: strings.Join(text.Cut, "; ")}
	blame.Text(text, text.Readings, blame.Options{Stop: o.Stop})
	var dumps []*bfclog.Dump
	if text.Log != nil {
		dumps = rep.dumpsOf(text.Log)
	}
	rep.replayText(text, dumps, &o)
	if !o.zipped {
		rep.inParts(o.Parts)
	}
	return rep.write(w, o)
}

// textKind is the one kind that a text holds, or "text" where it holds several.
func textKind(t *ingest.Text) string {
	kind := ""
	for _, r := range t.All() {
		switch kind {
		case "", r.Kind:
			kind = r.Kind
		default:
			return "text"
		}
	}
	if kind == "" {
		return "text"
	}
	return kind
}

// readingsJSON writes the readings of foreign texts under their facts' names, and
// first where they are from, if they are saved ones.
func (rep *report) readingsJSON(o *object) {
	if rep.saved != nil {
		rep.savedJSON(o)
	}
	o.key("readings")
	o.w.WriteByte('[')
	for i, r := range rep.readings {
		if i > 0 {
			o.w.WriteByte(',')
		}
		o.w.WriteString("\n  ")
		var b bytes.Buffer
		if err := json.Indent(&b, r.AppendJSON(nil), "  ", " "); err != nil { // cannot happen: what we write is JSON
			continue
		}
		o.w.Write(b.Bytes())
	}
	o.w.WriteString("\n ]")
}

// readingsText writes them for people.
func (rep *report) readingsText(w *bufio.Writer, width int) {
	for i, r := range rep.readings {
		if i == 2*maxShown {
			fmt.Fprintln(w)
			wrap(w, width, "", fmt.Sprintf("And %d more. --json lists them all.", len(rep.readings)-i))
			break
		}
		if i > 0 || len(rep.shownFailures()) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n\n", rep.where(r.File, r.Line, len(rep.readings)+len(rep.shownFailures()) > 1), r.Name)
		readingText(w, width, r)
	}
}

func readingText(w *bufio.Writer, width int, r *common.Reading) {
	head := r.Headline()
	if head != "" {
		wrap(w, width, "", head)
	}
	longest := 0
	for _, row := range r.Rows {
		longest = max(longest, len([]rune(row.Label)))
	}
	if len(r.Rows) > 0 && head != "" {
		fmt.Fprintln(w)
	}
	for _, row := range r.Rows {
		if row.Value == "" {
			continue
		}
		fmt.Fprintf(w, "  %-*s  %s\n", longest, row.Label, row.Value)
	}
	if f := barOf(r); f != nil {
		f.picture(w, width)
	}
	holdersText(w, width, r)
	list(w, width, "Not known", r.Open)
	replaysText(w, width, r)
	list(w, width, "What to do (not verified by a rerun)", r.Next)
}

// barOf is the usage bar that a reading keeps, to be drawn; nil where there is
// none, or not the whole.
func barOf(r *common.Reading) *failure {
	v, _ := r.Facts.Get("usage_bar")
	if len(v.Text) != 100 {
		return nil
	}
	return &failure{Reading: &analysis.Reading{Bar: v.Text}}
}
