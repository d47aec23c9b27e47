// Package groups forms the groups into which a foreign file's memory falls when
// it does not say what the memory is for: one for each of the few ops, or frames
// of a stack, that hold most. A picture has colours for these where it would be
// of one grey; who holds how much exactly is for the tables to say, and groups
// are no classes that an analysis could build on.
package groups

import (
	"sort"

	"tideline/protocol/event"
)

// Largest is the numbers of the holders that get a group, the largest first:
// those that hold most at the peak, and then, where few hold something there,
// those that ever held most. Both are in bytes by the holder's number.
func Largest(peak, most []int64) []int {
	var list []int
	for i := range most {
		if peak[i] > 0 || most[i] > 0 {
			list = append(list, i)
		}
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if peak[a] != peak[b] {
			return peak[a] > peak[b]
		}
		return most[a] > most[b]
	})
	return list[:min(len(list), event.NumGroups)]
}

// Category is the category of group i, counted from 0.
func Category(i int) event.Category { return event.Group1 + event.Category(i) }

// Name puts the groups' names into the facts of their allocator.
func Name(f *event.Fields, names []string) {
	for i, name := range names {
		f.Set(event.GroupKey(i), name)
	}
}
