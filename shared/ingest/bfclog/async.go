package bfclog

import "strings"

// asyncPool reads how much the driver's pool holds, which the stream-ordered
// allocator prints after its statistics where the driver tells it.
func (p *parser) asyncPool(r record) bool {
	d := p.latest(r.source, func(d *Dump) bool { return d.Async && !d.Pool.Known })
	if d == nil {
		return false
	}
	d.Pool = numberAfter(r.body, "RESERVED_MEM_CURRENT:")
	return d.Pool.Known
}

// histogram opens the list of live sizes: "size, count" on a line each.
func (p *parser) histogram(r record) bool {
	p.sizes = p.latest(r.source, func(d *Dump) bool { return d.Async && !d.HasSummary })
	if p.sizes != nil {
		p.sizes.HasSummary = true
	}
	return true
}

func (p *parser) histogramRow(r record) bool {
	if p.sizes == nil || !r.filed {
		return false
	}
	size, count, ok := strings.Cut(r.body, ", ")
	n, m := leadingNumber(size), leadingNumber(count)
	d := p.sizes
	if !ok || !n.Known || !m.Known || n.N <= 0 || m.N <= 0 || m.N > 1<<40 || n.N > (1<<62)/m.N || strings.Trim(r.body, "0123456789, ;") != "" {
		p.sizes = nil
		return false
	}
	if len(d.Summary) < maxSmall {
		d.Summary = append(d.Summary, SizeClass{Count: m.N, Size: n.N})
		for i := len(d.Summary) - 1; i > 0 && d.Summary[i-1].Size > d.Summary[i].Size; i-- { // nearly sorted
			d.Summary[i-1], d.Summary[i] = d.Summary[i], d.Summary[i-1]
		}
	}
	return true
}
