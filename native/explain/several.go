package explain

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tideline/protocol/event"
	"tideline/shared/analysis/ranks"
	common "tideline/shared/analysis/reading"
	"tideline/shared/ingest"
	"tideline/shared/redact"
	"tideline/shared/store"
)

// File is one of several, which may be opened again.
type File struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// fewest files are put side by side; fewer are told one after the other.
const fewest = 3

// Several explains files that are no texts which belong together: three or more
// are put side by side first, as those of a program's ranks are, and in the
// terminal only what fails or stands out among them is then told of in full. One
// that cannot be read is told as such, unless none can.
func Several(files []File, w io.Writer, o Options) error {
	rows := make([]ranks.Row, len(files))
	var first error
	unread := 0
	for i, f := range files {
		if o.Stop != nil && o.Stop() {
			rows[i] = ranks.Unread(f.Name, "the reading was ended")
			continue
		}
		r, err := sum(f)
		if err != nil {
			unread++
			if first == nil {
				first = err
			}
			r = ranks.Unread(f.Name, err.Error())
		}
		rows[i] = r
	}
	if unread == len(files) || unread > 0 && len(files) < fewest {
		return first
	}
	table := ranks.New(rows)
	shown := rows
	if o.Redact {
		red := redact.New()
		shown = make([]ranks.Row, len(rows))
		for i := range rows {
			shown[i] = rows[i]
			shown[i].Rename(func(s string) string { return red.Name(redact.File, s) }, func(s string) string { return red.Name(redact.Op, s) })
			shown[i].Problem, shown[i].Cut = red.Foreign(rows[i].Problem), red.Foreign(rows[i].Cut)
		}
	}
	side := beside{table: table, shown: table.With(shown)}
	if o.JSON {
		return side.json(files, w, o)
	}
	return side.text(files, w, o)
}

// sum is what one file comes to.
func sum(f File) (ranks.Row, error) {
	r, err := f.Open()
	if err != nil {
		return ranks.Row{}, err
	}
	defer func() { _ = r.Close() }() // it was only read
	in, err := ingest.Open(f.Name, r, ingest.Limits{})
	if err != nil {
		return ranks.Row{}, err //nolint:wrapcheck // it names the file
	}
	strs := new(event.Strings)
	filed := filing{tl: store.New(strs)}
	if err := in.Emit(strs, &filed); err != nil {
		return ranks.Row{}, fmt.Errorf("read %s: %w", f.Name, err)
	}
	filed.flush()
	row := ranks.Of(f.Name, filed.tl)
	row.Cut = in.Cut
	for _, x := range in.Readings {
		if h := x.Heading(); h != "" {
			row.Phrase, row.Verdict = h, x.Verdict
		}
	}
	for _, x := range slices.Backward(in.Readings) {
		if m := moment(x); m.InUse != ranks.Unknown && in.Moments() {
			row.Told(m)
			break
		}
	}
	return row, nil
}

// moment is what a reading of a text tells of its failure.
func moment(r *common.Reading) ranks.Moment {
	amount := func(bytes, mib string) int64 {
		if v, ok := r.Facts.Get(bytes); ok && v.Kind == common.IntKind {
			return v.Int
		}
		if v, ok := r.Facts.Get(mib); ok && v.Kind == common.FloatKind {
			return int64(math.Round(v.Float * (1 << 20)))
		}
		return ranks.Unknown
	}
	return ranks.Moment{
		Peak: amount("peak_in_use_bytes", ""), InUse: amount("in_use_bytes", "allocated_mib"),
		Reserved: amount("pool_bytes", "reserved_mib"), Hole: amount("largest_free_chunk_bytes", ""),
	}
}

// filing files events into a store.
type filing struct {
	tl    *store.Timeline
	batch []event.Event
}

// Emit implements event.Sink.
func (f *filing) Emit(e *event.Event) {
	if f.batch = append(f.batch, *e); len(f.batch) == 1024 {
		f.flush()
	}
}

func (f *filing) flush() {
	f.tl.Append(f.batch)
	f.batch = f.batch[:0]
}

// beside is files side by side: what was found, and the same as it is shown.
type beside struct{ table, shown *ranks.Table }

// telling are the files that are told of in full: those that failed or hold more
// than the others, those that failed and the highest first, or the first that can
// be read if there are none.
func (b *beside) telling() (list []int32, more int) {
	first := int32(-1)
	for _, i := range b.table.Order() {
		r := b.table.Row(i)
		switch {
		case r.Problem != "":
			continue
		case r.Failed || b.table.Far(i) > 0:
			list = append(list, i)
		case first < 0:
			first = i
		}
	}
	if len(list) == 0 && first >= 0 {
		list = append(list, first)
	}
	slices.SortStableFunc(list, func(x, y int32) int {
		if f, g := b.table.Row(x).Failed, b.table.Row(y).Failed; f != g {
			if f {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.table.Far(y), b.table.Far(x))
	})
	if n := len(list) - maxShown; n > 0 {
		return list[:maxShown], n
	}
	return list, 0
}

func (b *beside) text(files []File, w io.Writer, o Options) error {
	width := o.Width
	if width <= 0 {
		width = 80
	}
	list := []int32{0, 1}
	if len(files) >= fewest {
		out := bufio.NewWriter(w)
		b.rows(out)
		fmt.Fprintln(out)
		for _, s := range b.shown.Words() {
			wrap(out, width, "", s)
		}
		var more int
		list, more = b.telling()
		if len(list) < len(files) {
			names := make([]string, len(list))
			for k, i := range list {
				names[k] = b.shown.Label(i)
			}
			s := "In full: " + strings.Join(names, ", ")
			if more > 0 {
				s += fmt.Sprintf(", of %d that stand out", len(list)+more)
			}
			wrap(out, width, "", s+". Any other is told by its name alone, all by --json.")
		}
		fmt.Fprintln(out)
		if err := out.Flush(); err != nil {
			return fmt.Errorf("write the table of files: %w", err)
		}
	}
	for n, i := range list {
		if n > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return fmt.Errorf("write the report of %s: %w", files[i].Name, err)
			}
		}
		if err := one(files[i], w, o); err != nil {
			return err
		}
	}
	return nil
}

func one(f File, w io.Writer, o Options) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	return Explain(f.Name, r, w, o)
}

// barCells is the width of the longest bar.
const barCells = 16

// rows writes the table, its amounts flush right.
func (b *beside) rows(w *bufio.Writer) {
	head := []string{"file", "peak", "", "reserved then", "in use at end", "largest hole", ""}
	if b.table.Told() {
		head[0] = "rank"
	}
	lines := [][]string{head}
	most := int64(1)
	for _, i := range b.table.Order() {
		most = max(most, b.table.Row(i).Peak)
	}
	amount := func(n int64) string {
		if n == ranks.Unknown {
			return "-"
		}
		return bytesOf(n)
	}
	for _, i := range b.table.Order() {
		r := b.shown.Row(i)
		bar := ""
		if r.Peak > 0 {
			bar = strings.Repeat("#", int(max(1, (r.Peak*barCells+most/2)/most)))
		}
		lines = append(lines, []string{b.shown.Label(i), amount(r.Peak), bar, amount(r.Reserved), amount(r.End), amount(r.Hole), r.Says()})
	}
	wide := make([]int, len(head))
	for _, l := range lines {
		for i, c := range l[:len(l)-1] {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	for _, l := range lines {
		var s strings.Builder
		for i, c := range l {
			pad := strings.Repeat(" ", max(0, wide[i]-utf8.RuneCountInString(c)))
			switch {
			case i == 0 || i == 2:
				s.WriteString(c + pad + "  ")
			case i == len(l)-1:
				s.WriteString(c)
			default:
				s.WriteString(pad + c + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(s.String(), " "))
	}
}

// json writes the table, and the report of each file that can be read.
func (b *beside) json(files []File, w io.Writer, o Options) error {
	out := bufio.NewWriter(w)
	var failed error
	writeObject(out, 0, func(x *object) {
		x.object("side_by_side", b.tableJSON)
		x.key("reports")
		out.WriteByte('[')
		before := ""
		for _, i := range b.table.Order() {
			if b.table.Row(i).Problem != "" {
				continue
			}
			var report bytes.Buffer
			if err := one(files[i], &report, o); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			out.WriteString(before + "\n")
			before = ","
			out.Write(bytes.TrimRight(report.Bytes(), "\n"))
		}
		out.WriteString("\n ]")
	})
	out.WriteByte('\n')
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the reports: %w", err)
	}
	return failed
}

func (b *beside) tableJSON(o *object) {
	known := func(o *object, name string, n int64) {
		if n == ranks.Unknown {
			o.member(name, "null")
			return
		}
		o.integer(name, n)
	}
	known(o, "median_peak_bytes", b.table.Median())
	words := b.shown.Words()
	for i := range words {
		words[i] = quote(words[i])
	}
	o.member("words", "["+strings.Join(words, ", ")+"]")
	order := b.table.Order()
	o.array("files", len(order), func(n int, o *object) {
		i := order[n]
		r := b.shown.Row(i)
		o.text("file", r.Name)
		if b.table.Label(i) != b.table.Row(i).Name {
			o.text("rank", b.table.Label(i))
		}
		if r.Problem != "" {
			o.text("problem", r.Problem)
		}
		if r.Cut != "" {
			o.text("damage", r.Cut)
		}
		known(o, "peak_in_use_bytes", r.Peak)
		known(o, "reserved_at_peak_bytes", r.Reserved)
		known(o, "in_use_at_end_bytes", r.End)
		known(o, "largest_hole_bytes", r.Hole)
		o.integer("stands_out_bytes", b.table.Far(i))
		o.member("failed", strconv.FormatBool(r.Failed))
		if r.Verdict == "" {
			o.member("verdict", "null")
		} else {
			o.text("verdict", r.Verdict)
		}
	})
}

// Separate reports whether files are each explained by themselves: one is no text,
// or they are texts of three or more ranks by their names. heads are their first
// bytes.
func Separate(names []string, heads [][]byte) bool {
	for _, h := range heads {
		if k := ingest.Recognise(h); ingest.IsData(h) || k == ingest.Timeline || k == ingest.TimelineText || k == ingest.GZip {
			return true
		}
	}
	if len(names) < fewest {
		return false
	}
	rows := make([]ranks.Row, len(names))
	for i, name := range names {
		rows[i] = ranks.Unread(name, "")
	}
	return ranks.New(rows).Told()
}
