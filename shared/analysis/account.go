package analysis

import (
	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
	"tideline/shared/analysis/ledger"
)

// Ledger is where all memory of a device's card is now; nil where its size is
// not known. What is idle is told as it is for a request of the device's first
// allocator.
func (t *Timeline) Ledger(id event.DeviceID) *ledger.Ledger {
	for i := range t.allocs {
		if a := &t.allocs[i]; a.known && a.device == id && a.onCard() {
			return t.ledgerOf(a, nil)
		}
	}
	return nil
}

// onCard: an allocator whose memory is the device's, and not another's.
func (a *allocatorState) onCard() bool { return a.out.Within == "" && !a.pinned() }

// ledgerOf is that of the card that an allocator takes its memory from, for a
// request that it failed, or for none.
func (t *Timeline) ledgerOf(a *allocatorState, failed *event.Event) *ledger.Ledger {
	d := t.device(a.device)
	if !a.onCard() || a.imported {
		return nil
	}
	c := Card{
		Total: d.total, Held: d.held, Context: d.driver, Free: d.free, Kind: a.kind,
		Stamped: t.sum.Settings.Text(stampedKey) == "true",
	}
	for i := range t.allocs {
		o := &t.allocs[i]
		if x := t.device(o.device); !o.known || !o.onCard() || x != d && (d.card == "" || x.card != d.card) {
			continue
		}
		c.Pools = append(c.Pools, CardPool{
			Reserved: o.out.Reserved, InUse: o.out.InUse, Asked: o.asked, Limit: o.out.Limit, Own: o == a,
		})
	}
	if failed != nil {
		c.Map, _ = event.ParseChunkMap(t.strs.At(failed.Text))
		c.Failed = cause.Of(failed.Requested)
	}
	return c.Ledger()
}

const stampedKey = "runtime.timestamped_allocator" // of a run's settings

// Card is a card of a run at an instant.
type Card struct {
	Total, Held, Context amount // all of it; of it other processes', and this one's driver context
	Free                 amount // what the driver had when the run began
	Pools                []CardPool

	// Of the allocator that the ledger is for, and its failed request, if any.
	Kind    string // which allocator, a name of shared/alloc/kinds
	Failed  amount // bytes asked for
	Map     event.ChunkMap
	Stamped bool // what is free may wait for a time stamp
}

// CardPool is what an allocator has of a card.
type CardPool struct {
	Reserved, InUse, Asked int64 // bytes; Asked of InUse
	Limit                  amount
	Own                    bool // the allocator that the ledger is for
}

// CardOf is the card of a device by its facts, without pools.
func CardOf(device, allocator, settings event.Fields) Card {
	return Card{
		Total: fieldAmount(device, "total"), Held: fieldAmount(device, "held"), Context: fieldAmount(device, "context"),
		Free: fieldAmount(device, "free"), Kind: allocator.Text("kind"), Stamped: settings.Text(stampedKey) == "true",
	}
}

// Ledger is where all memory of the card is; nil where its size is not known,
// or a part of what its allocators hold is the host's. All allocators of the
// run on the card count: what is idle with another one is out of reach.
func (c *Card) Ledger() *ledger.Ledger {
	if !c.Total.Known || !c.Context.Known || !c.Held.Known || !c.Free.Known {
		return nil
	}
	in := ledger.Inputs{Total: c.Total, Others: c.Held, Outside: c.Context}
	var reserved, inUse, asked, elsewhere, limit int64
	limited := true
	for _, p := range c.Pools {
		reserved += p.Reserved
		inUse += p.InUse
		asked += p.Asked
		limit += p.Limit.N
		limited = limited && p.Limit.Known
		if !p.Own {
			elsewhere += p.Reserved - p.InUse
		}
	}
	if reserved > c.Total.N-c.Held.N-c.Context.N {
		return nil // unified memory
	}
	in.Reserved, in.InUse, in.Requested = cause.Of(reserved), cause.Of(inUse), cause.Of(asked)
	in.DriverFree = cause.Of(max(0, c.Free.N-reserved))
	if limited {
		in.Limit = cause.Of(limit)
	}
	if !c.Stamped {
		in.Pending = cause.Of(0)
	}
	switch {
	case c.Kind != "torch":
		in.Stranded = cause.Of(elsewhere)
	case c.Failed.Known && len(c.Map) > 0:
		in.Stranded = cause.Of(elsewhere + OtherSegments(c.Map, c.Failed.N))
	}
	return ledger.Of(in)
}

// Sizes of PyTorch's allocator: what is asked for up to a MiB comes from
// segments of 2 MiB, all else from others, which are never that small.
const (
	torchSmall   = 1 << 20
	torchSegment = 2 << 20
)

// OtherSegments are the free bytes that a request to PyTorch's allocator cannot
// have, because they lie in segments for requests of the other size. Segments
// that are free altogether count, though a large request gives those back first:
// the map of a failure has none.
func OtherSegments(m event.ChunkMap, request int64) (n int64) {
	for i := range m {
		if (m[i].Size == torchSegment) == (request <= torchSmall) {
			continue
		}
		for _, c := range m[i].Chunks {
			if !c.InUse {
				n += c.Size
			}
		}
	}
	return n
}
