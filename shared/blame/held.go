package blame

import (
	"slices"
	"sort"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

// maxPools bounds the allocators that are told of.
const maxPools = 16

// usage is what a key's blocks take at some moment.
type usage struct{ bytes, blocks int64 }

func (p *pool) usageAt(n int) []usage {
	u := make([]usage, len(p.keys))
	p.changes(0, n, func(_ int, c change) { u[c.key].add(c) })
	return u
}

func (u *usage) add(c change) {
	u.bytes += c.bytes
	if c.bytes < 0 {
		u.blocks--
	} else {
		u.blocks++
	}
}

// held is who holds the pool at its peak and at its end; once where both are
// one moment.
func (r *Recorder) held(p *pool) []reading.Held {
	if p.most == 0 {
		return nil
	}
	peak := r.heldAt(p, p.peak)
	peak.At, peak.Time = "peak", p.peakTime
	if p.base == p.n {
		peak.At, peak.Time = "instant", 0
		return []reading.Held{peak}
	}
	end := r.heldAt(p, p.n)
	end.At, end.Time = "end", p.last
	if end.Bytes == 0 || same(peak.Holders, end.Holders) && peak.Bytes == end.Bytes {
		return []reading.Held{peak}
	}
	return []reading.Held{peak, end}
}

func same(a, b []reading.Holder) bool { return slices.Equal(a, b) }

func (r *Recorder) heldAt(p *pool, n int) reading.Held {
	h := reading.Held{Pool: p.name}
	named := p.named()
	at := map[who]int{} // of the holders, by op or size alone
	var list []holder
	for i, u := range p.usageAt(n) {
		if u.blocks == 0 {
			continue
		}
		w := p.keys[i]
		h.Bytes, h.Blocks = h.Bytes+u.bytes, h.Blocks+u.blocks
		if w.op == 0 && (named || w.size == 0) {
			h.Unknown, h.UnknownBlocks = h.Unknown+u.bytes, h.UnknownBlocks+u.blocks
			if w.early {
				h.UnknownBefore += u.bytes
			}
			continue
		}
		k := who{op: w.op, size: w.size}
		m, ok := at[k]
		if !ok {
			m = len(list)
			at[k] = m
			list = append(list, holder{first: i})
		}
		list[m].add(int32(i), u, w.stack != 0)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].bytes > list[j].bytes })
	for i := range list {
		if i >= reading.MaxHolders {
			h.More++
			h.MoreBytes += list[i].bytes
			continue
		}
		h.Holders = append(h.Holders, r.holder(p, &list[i]))
	}
	return h
}

// named says whether any block has an op; where none has, blocks are told apart
// by their sizes.
func (p *pool) named() bool {
	return slices.ContainsFunc(p.keys, func(w who) bool { return w.op != 0 })
}

type holder struct {
	usage
	first   int   // its first key
	largest int32 // its key that holds most
	most    int64
	stacks  int64
}

func (h *holder) add(key int32, u usage, stack bool) {
	h.bytes, h.blocks = h.bytes+u.bytes, h.blocks+u.blocks
	if stack {
		h.stacks++
	}
	if u.bytes > h.most || h.stacks <= 1 && h.most == 0 {
		h.most, h.largest = u.bytes, key
	}
}

func (r *Recorder) holder(p *pool, h *holder) reading.Holder {
	name, caller := r.names(p.keys[h.largest])
	return reading.Holder{Sized: p.keys[h.largest].op == 0, Name: name, Caller: caller, Bytes: h.bytes, Blocks: h.blocks, Stacks: h.stacks}
}

// names are the holder's and its caller's.
func (r *Recorder) names(w who) (name, caller string) {
	if w.op == 0 {
		return "blocks of " + event.FormatBytes(w.size), ""
	}
	name = r.strs.At(w.op)
	if w.stack != 0 {
		caller = callerOf(name, strings.Split(r.strs.At(w.stack), "\n"))
	}
	return name, caller
}

// callerOf is the frame that called the one to blame: the nearest of the user's
// own code, else the nearest. The frames are told the outermost first.
func callerOf(op string, frames []string) string {
	at := -1
	for i := len(frames) - 1; i >= 0 && at < 0; i-- {
		if f := frameOf(frames[i]); f.short() == op || f.name == op {
			at = i
		}
	}
	if at <= 0 {
		return ""
	}
	for i := at - 1; i >= 0; i-- {
		if f := frameOf(frames[i]); f.own() && f.short() != op {
			return f.short()
		}
	}
	if s := frameOf(frames[at-1]).short(); s != op {
		return s
	}
	return ""
}

// frame is a line of a stack, "name file:12".
type frame struct{ name, file string }

func frameOf(line string) frame {
	i := strings.Index(line, " /")
	if i < 0 {
		i = strings.Index(line, `:\`) - 2 // a drive's letter and the blank before it
	}
	if i < 0 {
		i = strings.LastIndexByte(line, ' ')
	}
	if i < 0 {
		return frame{name: line}
	}
	return frame{line[:i], line[i+1:]}
}

// short is the frame with its file's name alone.
func (f frame) short() string {
	if f.file == "" {
		return f.name
	}
	return f.name + " " + f.file[strings.LastIndexAny(f.file, `/\`)+1:]
}

// own says whether it is the user's Python.
func (f frame) own() bool {
	file := f.file
	if i := strings.LastIndexByte(file, ':'); i >= 0 {
		file = file[:i]
	}
	return strings.HasSuffix(file, ".py") && !strings.Contains(file, "/torch/") && !strings.Contains(file, "/site-packages/")
}
