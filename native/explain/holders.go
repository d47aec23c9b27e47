package explain

import (
	"bufio"
	"fmt"
	"strconv"

	"tideline/protocol/event"
	common "tideline/shared/analysis/reading"
)

// holdersText says who holds the memory, what grows and what copies take.
func holdersText(w *bufio.Writer, width int, r *common.Reading) {
	for i := range r.Held {
		h := &r.Held[i]
		if !h.Shown(r.Held) {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", h.Title())
		for _, l := range h.Lines() {
			wrap(w, width, fmt.Sprintf("  %11s  ", l.Label), l.Value)
		}
	}
	list(w, width, common.GrowthTitle, r.GrowthSentences())
	if r.Copies != nil {
		fmt.Fprintln(w)
		wrap(w, width, "", r.Copies.Sentence())
	}
}

// held shows the same on the page.
func (c *card) held(r *common.Reading) {
	for i := range r.Held {
		h := &r.Held[i]
		if !h.Shown(r.Held) {
			continue
		}
		t := heldTable{Title: h.Title()}
		for k := range h.Holders {
			if k == pageHolders {
				break
			}
			x := &h.Holders[k]
			t.Rows = append(t.Rows, heldOne(x.Name, x.Caller, x.Bytes, x.Blocks, h.Bytes))
		}
		if n := int64(len(h.Holders)-len(t.Rows)) + h.More; n > 0 {
			rest := h.MoreBytes
			blocks := h.Blocks - h.UnknownBlocks
			for k := range h.Holders {
				if k < len(t.Rows) {
					blocks -= h.Holders[k].Blocks
				} else {
					rest += h.Holders[k].Bytes
				}
			}
			t.Rows = append(t.Rows, heldOne(fmt.Sprintf("%d more", n), "", rest, blocks, h.Bytes))
		}
		if h.UnknownBlocks > 0 {
			t.Rows = append(t.Rows, heldOne(h.UnknownWhy(), "", h.Unknown, h.UnknownBlocks, h.Bytes))
		}
		c.Held = append(c.Held, t)
	}
	c.list(common.GrowthTitle, r.GrowthSentences(), false)
	if r.Copies != nil {
		c.list("Copies", []string{r.Copies.Sentence()}, false)
	}
}

// pageHolders is how many holders a page lists.
const pageHolders = 20

func heldOne(name, caller string, bytes, blocks, of int64) heldRow {
	if caller != "" {
		name += ", from " + caller
	}
	return heldRow{
		Name: name, Bytes: event.FormatBytes(bytes), Blocks: strconv.FormatInt(blocks, 10), Width: int(100 * float64(bytes) / float64(max(of, 1))),
	}
}
