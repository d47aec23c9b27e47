package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
)

// AnswerOptions say how a trace is answered.
type AnswerOptions struct {
	Profile bfc.Profile
	// Log, if set, gets what the allocator logged: "@ N" before the records of
	// operation N, each with its severity letter.
	Log io.Writer
	// OpName is the running op's name in the log.
	OpName string
	// Map, if set, gets the memory map of the k-th 'm' operation, from 1.
	Map func(k int, m bfc.Map) error
}

// Answer plays the trace on a BFC allocator and writes the answers. An error
// of the trace names its line; what comes before it has been answered.
func Answer(r io.Reader, w io.Writer, o AnswerOptions) error {
	t, err := NewReader(r)
	if err != nil {
		return err
	}
	p := &player{t: t, out: bufio.NewWriterSize(w, 1<<16), o: o}
	if o.Log != nil {
		p.log = bufio.NewWriter(o.Log)
	}
	if err := p.start(); err != nil {
		return err
	}
	err = p.play()
	return errors.Join(err, p.flush())
}

// Build makes the driver and the allocator that the options describe.
func (o Options) Build(profile bfc.Profile, observer alloc.Observer) (*bfc.Allocator, error) {
	sub, err := alloc.NewSpace(alloc.SpaceOptions{
		Base: o.Base, Order: o.Order, Gap: o.Gap, Granularity: o.Granularity,
		IgnoreAlignment: !o.HonorAlign, Reuse: o.Reuse, Joins: o.Joins, Card: alloc.NewCard(o.Capacity),
	})
	if err != nil {
		return nil, err
	}
	return bfc.New(sub, bfc.Options{
		Name: o.Name, Limit: o.Limit, Growth: o.Growth, NoRetry: !o.Retry, GarbageCollection: o.GC,
		Fragmentation: o.Frag, Profile: profile, Observer: observer,
	})
}

// player holds the state of a trace being answered.
type player struct {
	t      *Reader
	o      AnswerOptions
	out    *bufio.Writer
	log    *bufio.Writer
	a      *bfc.Allocator
	c      alloc.Counter
	blocks []alloc.Block // by ID; address 0: oom
	op     int
	logged int // the operation whose "@" line is written
	maps   int
	line   []byte
}

func (p *player) start() error {
	a, err := p.t.Options.Build(p.o.Profile, (*hearer)(p))
	if err != nil {
		return fmt.Errorf("trace, options: %w", err)
	}
	p.a = a
	return nil
}

func (p *player) flush() error {
	err := p.out.Flush()
	if p.log != nil {
		err = errors.Join(err, p.log.Flush())
	}
	return err
}

func (p *player) play() error {
	for {
		op, err := p.t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		p.op++
		if err := p.do(op); err != nil {
			return err
		}
	}
	p.write("e")
	p.a.Close()
	return nil
}

func (p *player) do(op Op) error {
	switch op.Kind {
	case Alloc, AllocNoRetry:
		p.allocate(op)
	case Free:
		if err := p.a.Free(p.blocks[op.ID].Address); err != nil {
			return fmt.Errorf("trace, line %d: %w", p.t.Line(), err)
		}
	case Query:
		p.query(p.blocks[op.ID])
	case Sample:
		p.sample()
	case MemoryMap:
		return p.memoryMap()
	case Clear:
		p.a.ClearStats()
	case CounterOn:
		return p.a.SetCounter(&p.c)
	case CounterOff:
		return p.a.SetCounter(nil)
	case Tick:
		p.c.Next()
	case Frontier:
		p.a.SetSafeFrontier(op.Stamp.At(p.c.Now()))
	}
	return nil
}

func (p *player) allocate(op Op) {
	r := alloc.Request{Bytes: op.Bytes, Alignment: op.Align, NoRetry: op.Kind == AllocNoRetry}
	if by := op.Stamp.At(p.c.Now()); by > 0 {
		r.FreedBy = func() uint64 { return by }
	}
	if int(op.ID) >= len(p.blocks) {
		p.blocks = append(p.blocks, make([]alloc.Block, int(op.ID)+1-len(p.blocks))...)
	}
	b, ok := p.a.Allocate(r)
	p.blocks[op.ID] = b
	if !ok {
		p.write("a oom")
		return
	}
	p.line = strconv.AppendUint(append(p.line[:0], "a "...), b.Address, 16)
	p.end()
}

func (p *player) query(b alloc.Block) {
	if b.Address == 0 {
		p.write("q -")
		return
	}
	p.line = append(p.line[:0], 'q')
	p.ints(b.Requested, b.Size, b.ID)
	p.end()
}

func (p *player) sample() {
	s := p.a.Stats()
	p.line = append(p.line[:0], 's')
	p.ints(s.NumAllocs, s.InUse, s.PeakInUse, s.LargestAlloc, s.Limit, s.Reserved, s.PeakReserved, s.PeakAllocated)
	p.line = append(p.line, " -"...)
	p.ints(s.LargestFree, s.Pool, s.PeakPool)
	p.line = append(p.line, ' ')
	p.line = appendFloat(p.line, p.a.Fragmentation(), 17, 64)
	p.line = strconv.AppendUint(append(p.line, ' '), uint64(s.NextRegion), 10)
	p.end()
}

func (p *player) memoryMap() error {
	m := p.a.Map()
	p.maps++
	chunks := 0
	for _, r := range m.Regions {
		chunks += len(r.Chunks)
	}
	p.line = append(p.line[:0], 'm')
	p.ints(int64(len(m.Regions)), int64(chunks))
	p.line = append(p.line, ' ')
	p.line = appendFloat(p.line, float64(float32(m.Fragmentation)), 9, 32)
	p.end()
	for _, r := range m.Regions {
		p.place('r', r.Address)
		p.ints(r.Size)
		p.end()
		for _, c := range r.Chunks {
			inUse := int64(0)
			if c.InUse() {
				inUse = 1
			}
			p.place('k', c.Address)
			p.ints(c.Size, c.Requested, inUse, int64(c.Bin))
			p.line = strconv.AppendUint(append(p.line, ' '), c.FreedAt, 10)
			p.ints(c.ID, int64(c.Handle))
			p.end()
		}
	}
	for b, s := range m.Bins {
		if s.Chunks > 0 {
			p.line = append(p.line[:0], 'b')
			p.ints(int64(b), s.BytesInUse, s.Bytes, s.ChunksInUse, s.Chunks, s.RequestedInUse)
			p.end()
		}
	}
	p.write("w " + p.a.Occupancy())
	if p.o.Map != nil {
		return p.o.Map(p.maps, m)
	}
	return nil
}

func (p *player) place(letter byte, addr uint64) {
	p.line = strconv.AppendUint(append(p.line[:0], letter, ' '), addr, 16)
}

func (p *player) ints(list ...int64) {
	for _, n := range list {
		p.line = strconv.AppendInt(append(p.line, ' '), n, 10)
	}
}

func (p *player) write(s string) {
	p.line = append(p.line[:0], s...)
	p.end()
}

func (p *player) end() {
	p.line = append(p.line, '\n')
	p.out.Write(p.line) // its error comes back from Flush
}

// appendFloat writes f as C's %.*g.
func appendFloat(b []byte, f float64, digits, bits int) []byte {
	if math.IsNaN(f) {
		return append(b, "nan"...)
	}
	return appendG(b, f, digits, bits)
}

// hearer is the player as its allocator's observer.
type hearer player

func (h *hearer) RegionTaken(addr uint64, _, received int64) {
	p := (*player)(h)
	p.place('+', addr)
	p.ints(received)
	p.end()
}

func (h *hearer) RegionRefused(asked int64) {
	p := (*player)(h)
	p.line = strconv.AppendUint(append(p.line[:0], "! "...), uint64(asked), 10)
	p.end()
}

func (h *hearer) RegionGiven(addr uint64, bytes int64) {
	p := (*player)(h)
	p.place('-', addr)
	p.ints(bytes)
	p.end()
}

// Wait: nobody frees anything meanwhile.
func (h *hearer) Wait(nanos int64) int64 { return nanos }

func (h *hearer) Log(s alloc.Severity, text string) {
	if h.log == nil {
		return
	}
	if h.logged != h.op {
		h.logged = h.op
		h.log.WriteString("@ " + strconv.Itoa(h.op) + "\n")
	}
	h.log.WriteByte(byte(s))
	h.log.WriteByte(' ')
	h.log.WriteString(text)
	h.log.WriteByte('\n') // errors come back from Flush
}

func (h *hearer) Op() string { return h.o.OpName }
