package finding

import (
	"tideline/shared/analysis"
	"tideline/shared/analysis/cause"
	"tideline/shared/analysis/ledger"
	"tideline/shared/store"
)

// Ledger is where all memory of a pool's card was at a moment of it: with the
// request that failed then, or with none. Nil where the card's size is not
// known, and for a pool of host memory.
func Ledger(tl *store.Timeline, p *store.Pool, m store.Moment, failed *store.OOM) *ledger.Ledger {
	if isHost(tl, p.Device) || !onCard(p) {
		return nil
	}
	d := tl.Device(p.Device)
	c := analysis.CardOf(d.Facts, p.Facts, tl.Settings())
	card := d.Facts.Text("card")
	for _, o := range tl.Pools() {
		if !onCard(o) || o.Device != p.Device && (card == "" || tl.Device(o.Device).Facts.Text("card") != card) {
			continue
		}
		s := o.At(m.Time)
		if o == p {
			s = p.In(m)
		}
		x := analysis.CardPool{Reserved: s.Reserved, InUse: s.InUse, Asked: s.InUse - s.Waste, Own: o == p}
		if o.Limit > 0 {
			x.Limit = cause.Of(o.Limit)
		}
		c.Pools = append(c.Pools, x)
	}
	if failed != nil {
		c.Failed, c.Map = cause.Of(failed.Requested), p.ChunkMapIn(m)
	}
	return c.Ledger()
}

// onCard: a pool of the card's memory, not within another pool and not pinned
// host memory; and not an imported log's, which does not tell all of the card.
func onCard(p *store.Pool) bool {
	return p.Facts.Text("within") == "" && p.Facts.Text(analysis.FormatKey) == "" && !analysis.HostPinned(p.Name)
}
