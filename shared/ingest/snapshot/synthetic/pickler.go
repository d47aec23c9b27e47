package synthetic

import (
	"bufio"
	"encoding/binary"
	"io"
)

// pickler writes opcodes as CPython does. Errors are those of the bufio.Writer.
type pickler struct {
	w     *bufio.Writer
	proto int
	memo  uint32
	texts map[string]uint32
	tmp   [16]byte
}

func newPickler(w io.Writer, proto int) *pickler {
	p := &pickler{w: bufio.NewWriterSize(w, 1<<16), proto: proto, texts: map[string]uint32{}}
	p.op(0x80, byte(proto))
	return p
}

func (p *pickler) op(b ...byte) { _, _ = p.w.Write(b) } // Flush reports the error

func (p *pickler) u32(op byte, n uint32) {
	p.tmp[0] = op
	binary.LittleEndian.PutUint32(p.tmp[1:], n)
	p.op(p.tmp[:5]...)
}

// memoize numbers what lies on top of the stack.
func (p *pickler) memoize() uint32 {
	n := p.memo
	p.memo++
	switch {
	case p.proto >= 4:
		p.op(0x94)
	case n < 256:
		p.op('q', byte(n))
	default:
		p.u32('r', n)
	}
	return n
}

func (p *pickler) get(n uint32) {
	if n < 256 {
		p.op('h', byte(n))
		return
	}
	p.u32('j', n)
}

func (p *pickler) text(s string) {
	if n, ok := p.texts[s]; ok {
		p.get(n)
		return
	}
	if p.proto >= 4 && len(s) < 256 {
		p.op(0x8c, byte(len(s)))
	} else {
		p.u32('X', uint32(len(s)))
	}
	_, _ = p.w.WriteString(s)
	p.texts[s] = p.memoize()
}

func (p *pickler) integer(n int64) {
	switch {
	case n >= 0 && n < 256:
		p.op('K', byte(n))
	case n >= 0 && n < 1<<16:
		p.op('M', byte(n), byte(n>>8))
	case n == int64(int32(n)):
		p.u32('J', uint32(int32(n)))
	default:
		width := 1
		for width < 8 && (n>>(8*width-1) != 0 && n>>(8*width-1) != -1) {
			width++
		}
		p.tmp[0], p.tmp[1] = 0x8a, byte(width)
		binary.LittleEndian.PutUint64(p.tmp[2:], uint64(n))
		p.op(p.tmp[:2+width]...)
	}
}

func (p *pickler) boolean(b bool) {
	if b {
		p.op(0x88)
		return
	}
	p.op(0x89)
}

// dict writes a dict whose items fill writes, keys and values by turns.
func (p *pickler) dict(fill func()) uint32 {
	p.op('}')
	n := p.memoize()
	p.op('(')
	fill()
	p.op('u')
	return n
}

// list writes a list of n items, a thousand at a time.
func (p *pickler) list(n int, item func(i int)) uint32 {
	p.op(']')
	number := p.memoize()
	for i := 0; i < n; i += 1000 {
		end := min(n, i+1000)
		if end == i+1 {
			item(i)
			p.op('a')
			break
		}
		p.op('(')
		for k := i; k < end; k++ {
			item(k)
		}
		p.op('e')
	}
	return number
}

func (p *pickler) pair(a, b int64) {
	p.integer(a)
	p.integer(b)
	p.op(0x86)
	p.memoize()
}

func (p *pickler) key(name string, n int64) {
	p.text(name)
	p.integer(n)
}

func (p *pickler) finish() error {
	p.op('.')
	return p.w.Flush()
}
