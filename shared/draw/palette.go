package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// palette is the theme as pixels.
type palette struct {
	theme Theme
	ready bool

	lane, grid, line, reserved, pool, limit, ghost, halo pixel
	hole, outside, warning, peak, stage, queue           pixel
	category, faint, edge                                [event.NumCategories]pixel
	phase, cause                                         [store.NumClasses]pixel
	cell                                                 [256]pixel
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
	}
	for i := range t.Phase {
		p.phase[i], p.cause[i] = t.Phase[i].pixel(), t.Cause[i].pixel()
	}
	for i := range p.cell {
		c := store.Cell(i)
		if c.Fill() == 0 || int(c.Category()) >= len(t.Category) {
			p.cell[i] = p.hole
			continue
		}
		// A cell with little in it still shows that it is not free.
		p.cell[i] = t.Hole.Mix(t.Category[c.Category()], 0.3+0.7*float64(c.Fill())/15).pixel()
	}
}
