package bfc_test

import (
	"fmt"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
)

// soak is the random run of the specification's checklist, L: its hash and
// final figures were measured on the original.
type soak struct {
	name    string
	o       bfc.Options
	space   alloc.SpaceOptions
	stamped bool // a timing counter; at every 16th free the frontier follows
	aligned bool // draws an alignment
	ends    bool // draws an end

	hash                           uint64
	fails, live                    int
	inUse, peak, largest, pool     int64
	regions, chunks, free, handles int
	largestFree                    int64
	taken, refused, given          int
	next                           int64
	classicToo                     bool
}

const gib = 1 << 30

func upwards2MiB(joins bool, capacity int64) alloc.SpaceOptions {
	return alloc.SpaceOptions{Base: 0x7f0000000000, Alignment: 2 << 20, Joins: joins, Card: alloc.NewCard(capacity)}
}

func soaks() []soak {
	fixed := bfc.Options{Limit: gib}
	growth := bfc.Options{Limit: gib, Growth: true}
	withGC := func(o bfc.Options) bfc.Options { o.GarbageCollection = true; return o }
	fraction := fixed
	fraction.Fragmentation = 0.01
	gen := func(g bfc.Generation) bfc.Options {
		return bfc.Options{Limit: gib, Partition: bfc.Partition{On: true, Generation: g}}
	}
	plain := upwards2MiB(false, 0)
	r2 := soak{
		name: "R2", o: growth, space: plain, classicToo: true,
		hash: 0x9644b267de3b5cd2, fails: 1607, live: 371, inUse: 906247168, peak: 1071759616, largest: 125591808,
		pool: 1073741824, regions: 6, chunks: 407, free: 36, largestFree: 48185344, handles: 472,
	}
	r3 := r2
	r3.name, r3.o = "R3, R2 with collection", withGC(growth)
	return []soak{
		{
			name: "R1", o: fixed, space: plain, classicToo: true,
			hash: 0xc9b7c731a773af15, fails: 1598, live: 380, inUse: 923330048, peak: 1073316864, largest: 129156864,
			pool: 1073741824, regions: 1, chunks: 417, free: 37, largestFree: 31503360, handles: 481,
		},
		r2, r3,
		{
			name: "R4", o: growth, space: upwards2MiB(true, 0), classicToo: true,
			hash: 0x0452126571994008, fails: 1589, live: 389, inUse: 992923904, peak: 1073120256, largest: 105295104,
			pool: 1073741824, regions: 1, chunks: 427, free: 38, largestFree: 13622016, handles: 501,
		},
		{
			name: "R5", o: fraction, space: plain, classicToo: true,
			hash: 0xf10a0a54573687bb, fails: 1567, live: 411, inUse: 949120256, peak: 1073215488, largest: 74760960,
			pool: 1073741824, regions: 1, chunks: 448, free: 37, largestFree: 30739968, handles: 521,
		},
		{
			name: "R6", o: withGC(bfc.Options{Limit: 1500000000, Growth: true}), space: upwards2MiB(false, 1000000000), classicToo: true,
			hash: 0x8a40a287ce60de3f, fails: 1614, live: 364, inUse: 850515456, peak: 998547968, largest: 119654400,
			pool: 999384064, regions: 7, chunks: 402, free: 38, largestFree: 24593664, handles: 467,
			taken: 8, refused: 40776, given: 1, next: 4294967296,
		},
		{
			name: "R7", o: fixed, space: plain, stamped: true, classicToo: true,
			hash: 0x14ae90a4f3ad1283, fails: 1573, live: 405, inUse: 999886848, peak: 1071169792, largest: 114975744,
			pool: 1073741824, regions: 1, chunks: 448, free: 43, largestFree: 6931968, handles: 516,
		},
		{
			name: "R8", o: fixed, space: plain, aligned: true,
			hash: 0x8880b021620bd8c0, fails: 1612, live: 410, inUse: 945983232, peak: 1063006976, largest: 105405440,
			chunks: 516, free: 106, largestFree: 25701632, handles: 526,
		},
		{
			name: "R9", o: withGC(growth), space: plain, aligned: true,
			hash: 0x9a0ad06669a37240, fails: 1620, live: 402, inUse: 964842752, peak: 1062152960, largest: 108768000,
			chunks: 486, free: 84, largestFree: 21888000, handles: 488,
		},
		{
			name: "P1 gen 1", o: gen(bfc.Gen1), space: plain, ends: true,
			hash: 0xc99a736eef287fdc, fails: 1625, live: 397, inUse: 779672576, peak: 1026054656, largest: 78029312,
			chunks: 497, free: 100, largestFree: 56266752, handles: 501,
		},
		{
			name: "P2 gen 1", o: gen(bfc.Gen1), space: plain, aligned: true, ends: true,
			hash: 0x1b372b80a5f146e7, fails: 1601, live: 445, inUse: 817982464, peak: 997976320, largest: 99229952,
			chunks: 642, free: 197, largestFree: 19759360, handles: 648,
		},
		{
			name: "P1 gen 2", o: gen(bfc.Gen2), space: plain, ends: true,
			hash: 0x481dec1bcae6497b, fails: 1630, live: 392, inUse: 1000273920, peak: 1062324992, largest: 97794560,
			chunks: 427, free: 35, largestFree: 24498944, handles: 428,
		},
		{
			name: "P2 gen 2", o: gen(bfc.Gen2), space: plain, aligned: true, ends: true,
			hash: 0xc115314c608f6ff4, fails: 1642, live: 404, inUse: 824765696, peak: 1029647360, largest: 107872256,
			chunks: 513, free: 109, largestFree: 42270720, handles: 519,
		},
	}
}

// lcg is the checklist's random source.
type lcg uint64

func (x *lcg) next() uint64 {
	*x = *x*6364136223846793005 + 1442695040888963407
	return uint64(*x >> 33)
}

// tally counts what the driver was asked.
type tally struct {
	alloc.NoObserver
	taken, refused, given int
}

func (t *tally) RegionTaken(uint64, int64, int64) { t.taken++ }
func (t *tally) RegionRefused(int64)              { t.refused++ }
func (t *tally) RegionGiven(uint64, int64)        { t.given++ }

// run plays the soak; each, if not nil, is called after every step.
func (s soak) run(tb testing.TB, p bfc.Profile, each func(a *bfc.Allocator)) (a *bfc.Allocator, seen *tally, hash uint64, fails, live int) {
	tb.Helper()
	s.space.Card = alloc.NewCard(s.space.Card.Capacity()) // every run has a card of its own
	sub, err := alloc.NewSpace(s.space)
	if err != nil {
		tb.Fatal(err)
	}
	seen = &tally{}
	s.o.Observer, s.o.Profile = seen, p
	if a, err = bfc.New(sub, s.o); err != nil {
		tb.Fatal(err)
	}
	var counter alloc.Counter
	if s.stamped {
		if err := a.SetCounter(&counter); err != nil {
			tb.Fatal(err)
		}
	}
	const base = 0x7f0000000000
	hash = 14695981039346656037
	x := lcg(12345)
	var blocks []uint64
	frees := uint64(0)
	for range 20000 {
		r := x.next()
		if len(blocks) > 0 && r%100 >= 55 {
			j := x.next() % uint64(len(blocks))
			if err := a.Free(blocks[j]); err != nil {
				tb.Fatal(err)
			}
			blocks[j] = blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			if frees++; frees%16 == 0 && frees >= 8 {
				a.SetSafeFrontier(frees - 8)
			}
		} else {
			k, z := x.next()%4, x.next()
			q := alloc.Request{NoRetry: true, Bytes: int64(1 + z%[4]uint64{1024, 65536, 4194304, 67108864}[k])}
			if s.aligned {
				q.Alignment = [5]int64{64, 256, 1024, 65536, 2097152}[x.next()%5]
			}
			end := alloc.Lower
			if s.ends && x.next()%2 == 1 {
				end = alloc.Upper
			}
			got := ^uint64(0)
			if b, ok := a.AllocateFrom(end, q); ok {
				blocks = append(blocks, b.Address)
				got = b.Address - base
			} else {
				fails++
			}
			for range 8 {
				hash = (hash ^ got&0xff) * 1099511628211
				got >>= 8
			}
		}
		if each != nil {
			each(a)
		}
	}
	return a, seen, hash, fails, len(blocks)
}

func TestTheRandomSoakHasTheMeasuredHash(t *testing.T) {
	for _, s := range soaks() {
		profiles := []bfc.Profile{bfc.Current}
		if s.classicToo {
			profiles = append(profiles, bfc.Classic)
		}
		for _, p := range profiles {
			t.Run(fmt.Sprintf("%s %s", s.name, p), func(t *testing.T) {
				a, seen, hash, fails, live := s.run(t, p, nil)
				if hash != s.hash {
					t.Errorf("hash %016x, want %016x", hash, s.hash)
				}
				m := a.Map()
				chunks, free := 0, 0
				for _, r := range m.Regions {
					for _, c := range r.Chunks {
						chunks++
						if !c.InUse() {
							free++
						}
					}
				}
				st := m.Stats
				same := func(what string, got, want int64) {
					if got != want && want != 0 {
						t.Errorf("%s %d, want %d", what, got, want)
					}
				}
				same("failed requests", int64(fails), int64(s.fails))
				same("live blocks", int64(live), int64(s.live))
				same("in use", st.InUse, s.inUse)
				same("peak", st.PeakInUse, s.peak)
				same("largest block", st.LargestAlloc, s.largest)
				same("pool", st.Pool, s.pool)
				same("regions", int64(len(m.Regions)), int64(s.regions))
				same("chunks", int64(chunks), int64(s.chunks))
				same("free chunks", int64(free), int64(s.free))
				same("largest free", st.LargestFree, s.largestFree)
				same("handles", int64(a.Handles()), int64(s.handles))
				same("regions taken", int64(seen.taken), int64(s.taken))
				same("region requests refused", int64(seen.refused), int64(s.refused))
				same("regions given back", int64(seen.given), int64(s.given))
				same("next region", st.NextRegion, s.next)
			})
		}
	}
}
