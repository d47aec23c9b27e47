package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// dimmed is how much is left of the colour of what does not pass a filter.
const dimmed = 0.38

// palette is the theme as pixels.
type palette struct {
	theme Theme
	ready bool

	lane, grid, line, reserved, pool, limit, ghost, halo pixel
	hole, outside, warning, peak, stage, queue           pixel
	category, faint, edge                                [event.NumCategories]pixel
	pass, passFaint                                      [event.NumCategories]pixel // what passes a filter
	dim, dimFaint, dimBlock                              [event.NumCategories]pixel // what does not pass a filter
	phase, cause                                         [store.NumClasses]pixel
	cell, partCell, dimCell                              [256]pixel
}

func (p *palette) use(t *Theme) {
	if p.ready && p.theme == *t {
		return
	}
	*p = palette{
		theme: *t, ready: true,
		lane: t.Lane.pixel(), grid: t.Grid.pixel(), line: t.Line.pixel(), reserved: t.Reserved.pixel(),
		pool: t.Pool.pixel(), limit: t.Limit.pixel(), ghost: t.Ghost.pixel(), halo: t.Lane.pixel(),
		hole: t.Hole.pixel(), outside: t.Outside.pixel(), warning: t.Warning.pixel(), peak: t.Peak.pixel(),
		stage: t.Stage.pixel(), queue: t.Queue.pixel(),
	}
	for i, c := range t.Category {
		p.category[i] = c.pixel()
		// What comes and goes within one pixel column.
		p.faint[i] = c.Mix(t.Lane, 0.28).pixel()
		p.edge[i] = c.Mix(t.Lane, 0.32).pixel()
		grey := c.Mix(t.Category[event.Unknown], 0.55)
		p.dim[i] = t.Lane.Mix(grey, dimmed).pixel()
		p.dimFaint[i] = t.Lane.Mix(grey, dimmed*0.7).pixel()
		p.dimBlock[i] = t.Hole.Mix(grey, dimmed).pixel()
	}
	p.pass, p.passFaint = p.category, p.faint
	p.pass[event.Unknown] = t.Match.pixel()
	p.passFaint[event.Unknown] = t.Match.Mix(t.Lane, 0.28).pixel()
	for i := range t.Phase {
		p.phase[i], p.cause[i] = t.Phase[i].pixel(), t.Cause[i].pixel()
	}
	for i := range p.cell {
		c := store.Cell(i)
		if c.Fill() == 0 || int(c.Category()) >= len(t.Category) {
			p.cell[i], p.partCell[i], p.dimCell[i] = p.hole, p.hole, p.hole
			continue
		}
		// A cell with little in it still shows that it is not free.
		full := float64(c.Fill()) / 15
		p.cell[i] = t.Hole.Mix(t.Category[c.Category()], 0.3+float64(0.7*full)).pixel()
		// One that passes must not be taken for one that does not.
		match := t.Category[c.Category()]
		if c.Category() == event.Unknown {
			match = t.Match
		}
		p.partCell[i] = t.Hole.Mix(match, 0.6+float64(0.4*full)).pixel()
		grey := t.Category[c.Category()].Mix(t.Category[event.Unknown], 0.55)
		p.dimCell[i] = t.Hole.Mix(grey, dimmed*(0.4+float64(0.6*full))).pixel()
	}
}
