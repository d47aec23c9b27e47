package explain

import (
	"bufio"
	"fmt"
	"strings"

	"tideline/protocol/event"
)

// picture draws the pool as a row of cells with the largest hole marked: from
// the chunks where all are known, else from the bar in the log.
func (f *failure) picture(w *bufio.Writer, width int) {
	cells, from, to, exact := f.cells(width - 4)
	if cells == nil {
		return
	}
	fmt.Fprintf(w, "\n  %s\n", string(cells))
	if to <= from {
		fmt.Fprintf(w, "  █ in use  ▒ unused tail of a chunk  · free\n")
		return
	}
	label := "largest hole"
	if !exact {
		label = "longest free run of the bar, an estimate"
	} else if f.LargestFree.Known {
		label += ", " + event.FormatBytes(f.LargestFree.N)
	}
	fmt.Fprintf(w, "  %s%s\n", strings.Repeat(" ", from), strings.Repeat("▔", to-from))
	at := from
	if over := at + len(label) + 2 - width; over > 0 {
		at = max(0, at-over)
	}
	fmt.Fprintf(w, "  %s%s\n", strings.Repeat(" ", at), label)
	fmt.Fprintf(w, "  █ in use  ▒ unused tail of a chunk  · free\n")
}

const (
	usedCell = '█'
	tailCell = '▒'
	freeCell = '·'
)

// cells returns the picture and the half-open range of the largest hole in it.
func (f *failure) cells(width int) (cells []rune, from, to int, exact bool) {
	n := max(10, min(100, width))
	if f.ListComplete && len(f.Map) > 0 {
		return f.mapCells(n)
	}
	if len(f.Bar) == 100 {
		return f.barCells(n)
	}
	return nil, 0, 0, false
}

// mapCells lays the regions end to end. A cell shows what fills most of it, so
// that no sliver of use hides a hole and no hole hides a sliver. Older logs list
// no requests; the tails are then those of the log's bar, of the same layout.
func (f *failure) mapCells(n int) (cells []rune, from, to int, exact bool) {
	var total int64
	for _, r := range f.Map {
		total += r.Size
	}
	if total <= 0 {
		return nil, 0, 0, false
	}
	perCell := float64(total) / float64(n)
	used, tail := make([]float64, n), make([]float64, n)
	tails := false
	var base int64
	for _, r := range f.Map {
		for _, c := range r.Chunks {
			at := base + int64(c.Address-r.Address)
			if c.InUse {
				tails = tails || c.Requested < c.Size
				fill(used, at, min(c.Requested, c.Size), perCell)
				fill(tail, at+min(c.Requested, c.Size), c.Size-min(c.Requested, c.Size), perCell)
			} else if c.Address == f.LargestFreeAt && c.Size == f.LargestFree.N {
				from = int(float64(at) / perCell)
				to = min(n, max(from+1, int(float64(at+c.Size)/perCell+0.5)))
			}
		}
		base += r.Size
	}
	cells = make([]rune, n)
	for i := range cells {
		switch {
		case !tails && len(f.Bar) == 100 && used[i] >= perCell/2 && f.Bar[(2*i+1)*50/n] == 'x':
			cells[i] = tailCell
		case tail[i] > used[i] && tail[i] > perCell/2:
			cells[i] = tailCell
		case used[i]+tail[i] >= perCell/2:
			cells[i] = usedCell
		default:
			cells[i] = freeCell
		}
	}
	return cells, from, to, true
}

// fill adds size bytes at a position to the cells that they cover.
func fill(cells []float64, at, size int64, perCell float64) {
	lo, hi := float64(at), float64(at+size)
	for i := int(lo / perCell); i < len(cells) && float64(i)*perCell < hi; i++ {
		a, b := max(lo, float64(i)*perCell), min(hi, float64(i+1)*perCell)
		if b > a {
			cells[i] += b - a
		}
	}
}

// barCells scales the log's bar. The hole is placed by its address where one
// region is known whole, else by the longest free run.
func (f *failure) barCells(n int) (cells []rune, from, to int, exact bool) {
	cells = make([]rune, n)
	for i := range cells {
		cells[i] = freeCell
		for j := i * 100 / n; j < max(i*100/n+1, (i+1)*100/n); j++ {
			switch f.Bar[j] {
			case '*':
				cells[i] = usedCell
			case 'x':
				if cells[i] == freeCell {
					cells[i] = tailCell
				}
			}
		}
	}
	if len(f.Map) == 1 && f.LargestFreeAt >= f.Map[0].Address && f.LargestFreeAt != 0 && f.Map[0].Size > 0 && f.Regions.Known {
		at := float64(f.LargestFreeAt - f.Map[0].Address)
		size := float64(f.Map[0].Size)
		from = int(at / size * float64(n))
		to = int((at + float64(f.LargestFree.N)) / size * float64(n))
		if from < n && to <= n && to > from {
			return cells, from, to, true
		}
	}
	run, best, end := 0, 0, 0
	for i, c := range cells {
		if run++; c != freeCell {
			run = 0
		}
		if run > best {
			best, end = run, i+1
		}
	}
	return cells, end - best, end, false
}
