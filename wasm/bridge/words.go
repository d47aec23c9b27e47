package bridge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/draw"
	"tideline/shared/store"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func size(n int64) string { return event.FormatBytes(n) }

func clock(ns int64) string { return draw.FormatTime(ns, 0) }

func address(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return itoa(n) + " " + what + "s"
}

func percent(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// signed writes a difference of bytes.
func signed(n int64) string {
	switch {
	case n == 0:
		return "same"
	case n > 0:
		return "+" + size(n)
	}
	return "−" + size(-n)
}

func tone(n int64) string {
	switch {
	case n > 0:
		return "more"
	case n < 0:
		return "less"
	}
	return ""
}

// short is a device's name without what all of them share.
func short(name string) string {
	if i := strings.LastIndex(name, "/device:"); i >= 0 {
		return name[i+len("/device:"):]
	}
	return strings.TrimPrefix(name, "/")
}

// oneLine is a name without line ends: those of a stack part its frames.
func oneLine(name string) string { return strings.ReplaceAll(name, "\n", " › ") }

// title is a word with a capital.
func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// heading is a category's name as a heading: that of a group is somebody's code
// and stays as it is.
func heading(p *store.Pool, c event.Category) string {
	if c != c.Plain() {
		return p.CategoryName(c)
	}
	return title(p.CategoryName(c))
}

// number reads a word of a question; what is no number is 0.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(s, 64)
		return int64(f)
	}
	return n
}

// sortByTotal orders sizes by the bytes that all chunks of the size hold.
func sortByTotal(sizes []int64, count map[int64]int64) {
	// Numbers of places are sorted, as package store does, for one more type
	// that is sorted by itself would make the module larger.
	was := slices.Clone(sizes)
	order := make([]int32, len(sizes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := was[a], was[b]
		return cmp.Or(cmp.Compare(y*count[y], x*count[x]), cmp.Compare(y, x))
	})
	for i, k := range order {
		sizes[i] = was[k]
	}
}
