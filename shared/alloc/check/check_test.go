package check_test

import (
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/check"
)

type ev = event.Event

func region(addr uint64, size int64) ev {
	return ev{Kind: event.RegionAdd, Address: addr, Size: size, Requested: size}
}

func gone(addr uint64, size int64) ev { return ev{Kind: event.RegionRemove, Address: addr, Size: size} }

func taken(addr uint64, size, requested int64) ev {
	return ev{Kind: event.Alloc, Address: addr, Size: size, Requested: requested}
}

func freed(addr uint64, size int64) ev { return ev{Kind: event.Free, Address: addr, Size: size} }

func at(t int64, e ev) ev { e.Time = t; return e }

func TestEveryRuleIsKept(t *testing.T) {
	const base = 0x10000
	for _, c := range []struct {
		name   string
		events []ev
		want   string // "" for none
	}{
		{"a decent life", []ev{
			region(base, 4096), taken(base, 256, 1), taken(base+256, 512, 300), freed(base, 256), taken(base, 256, 256),
			freed(base+256, 512), freed(base, 256), gone(base, 4096),
		}, ""},
		{"over joined regions", []ev{
			region(base, 4096), region(base+4096, 4096), taken(base+2048, 4096, 4096), freed(base+2048, 4096), gone(base, 8192),
		}, ""},
		{"three regions in any order", []ev{
			region(base+8192, 4096), region(base, 4096), region(base+4096, 4096), taken(base+256, 9984, 1), freed(base+256, 9984),
			gone(base+4096, 4096), gone(base+8192, 4096), gone(base, 4096),
		}, ""},
		{"other allocators do not matter", []ev{
			region(base, 4096), taken(base, 256, 1),
			{Kind: event.RegionAdd, Allocator: 1, Address: base, Size: 4096},
			{Kind: event.Alloc, Allocator: 1, Address: base, Size: 256, Requested: 3},
		}, ""},
		{"in place", []ev{region(base, 4096), taken(base, 512, 300), {Kind: event.Forward, Address: base, Size: 512, Requested: 400}, freed(base, 512)}, ""},
		{"region over region", []ev{region(base, 4096), region(base+2048, 4096)}, "lies over the one at 10000"},
		{"region under region", []ev{region(base+2048, 4096), region(base, 4096)}, "lies over the one at 10800"},
		{"region twice", []ev{region(base, 4096), region(base, 4096)}, "lies over"},
		{"region off the granule", []ev{region(base+8, 4096)}, "no multiple of 256"},
		{"region less than asked", []ev{{Kind: event.RegionAdd, Address: base, Size: 256, Requested: 512}}, "less than the 512 bytes asked for"},
		{"above the limit", []ev{region(base, 1<<20), region(base<<8, 256)}, "above the limit"},
		{"half a region", []ev{region(base, 4096), gone(base, 2048)}, "not made of whole regions"},
		{"unknown region", []ev{region(base, 4096), gone(base+4096, 4096)}, "not made of whole regions"},
		{"regions with a hole", []ev{region(base, 256), region(base+512, 256), gone(base, 768)}, "not made of whole regions"},
		{"region in use", []ev{region(base, 4096), taken(base, 256, 1), gone(base, 4096)}, "still in use"},
		{"block over block", []ev{region(base, 4096), taken(base, 512, 1), taken(base+256, 256, 1)}, "lies over the one at 10000"},
		{"block under block", []ev{region(base, 4096), taken(base+256, 512, 1), taken(base, 512, 1)}, "lies over the one at 10100"},
		{"outside", []ev{region(base, 4096), taken(base+4096, 256, 1)}, "inside of a region"},
		{"before", []ev{region(base, 4096), taken(base-256, 256, 1)}, "inside of a region"},
		{"half outside", []ev{region(base, 4096), taken(base+3840, 512, 1)}, "inside of a region"},
		{"over a hole", []ev{region(base, 256), region(base+512, 256), taken(base, 768, 1)}, "inside of a region"},
		{"no regions", []ev{taken(base, 256, 1)}, "inside of a region"},
		{"after the region went", []ev{region(base, 256), gone(base, 256), taken(base, 256, 1)}, "inside of a region"},
		{"crooked address", []ev{region(base, 4096), taken(base+64, 256, 1)}, "address is no multiple"},
		{"crooked size", []ev{region(base, 4096), taken(base, 300, 300)}, "size is no multiple"},
		{"less than requested", []ev{region(base, 4096), taken(base, 256, 257)}, "smaller than the 257 bytes requested"},
		{"nothing requested", []ev{region(base, 4096), taken(base, 256, 0)}, "0 bytes were requested"},
		{"no size", []ev{region(base, 4096), taken(base, 0, 0)}, "not positive"},
		{"nil", []ev{taken(0, 256, 1)}, "address 0"},
		{"past the end", []ev{region(^uint64(0)&^255, 512)}, "past the end"},
		{"free of nothing", []ev{region(base, 4096), freed(base, 256)}, "no block in use begins there"},
		{"free twice", []ev{region(base, 4096), taken(base, 256, 1), freed(base, 256), freed(base, 256)}, "no block in use begins there"},
		{"free inside", []ev{region(base, 4096), taken(base, 512, 1), freed(base+256, 256)}, "no block in use begins there"},
		{"free of another size", []ev{region(base, 4096), taken(base, 512, 1), freed(base, 256)}, "has 512 bytes"},
		{"in place but larger", []ev{region(base, 4096), taken(base, 512, 1), {Kind: event.Forward, Address: base, Size: 512, Requested: 600}}, "600 bytes it now holds"},
		{"refused nothing", []ev{{Kind: event.RegionRefused}}, "no memory"},
		{"back in time", []ev{at(5, region(base, 256)), at(4, gone(base, 256))}, "time goes back from 5 to 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := check.New(func(event.DeviceID, event.AllocatorID) check.Rules { return check.BFC(1 << 20) }, nil)
			for i := range c.events {
				if err := j.Err(); err != nil {
					t.Fatalf("already event %d is called wrong: %v", i-1, err)
				}
				j.Emit(&c.events[i])
			}
			err := j.Err()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("verdict %v, want %q", err, c.want)
			}
		})
	}
}

func TestTheMapOfAnOutOfMemoryMustAgree(t *testing.T) {
	good := event.ChunkMap{{Address: 0x1000, Size: 1024, Chunks: []event.Chunk{
		{Address: 0x1000, Size: 256, Requested: 3, InUse: true}, {Address: 0x1100, Size: 768},
	}}}
	change := func(f func(m event.ChunkMap)) event.ChunkMap {
		m := event.ChunkMap{{Address: 0x1000, Size: 1024, Chunks: append([]event.Chunk(nil), good[0].Chunks...)}}
		f(m)
		return m
	}
	for want, m := range map[string]event.ChunkMap{
		"":                              good,
		"has 0 blocks in use":           {},
		"called free":                   change(func(m event.ChunkMap) { m[0].Chunks[0].InUse = false }),
		"no block in use matches":       change(func(m event.ChunkMap) { m[0].Chunks[1].InUse = true }),
		"follows on one that ends":      change(func(m event.ChunkMap) { m[0].Chunks[1].Address += 256 }),
		"end at 1300":                   change(func(m event.ChunkMap) { m[0].Chunks[1].Size = 512 }),
		"no regions cover":              change(func(m event.ChunkMap) { m[0].Size = 2048 }),
		"mapped one at 1000 of 0 bytes": change(func(m event.ChunkMap) { m[0].Chunks = nil; m[0].Size = 0 }),
	} {
		var text event.Strings
		j := check.New(nil, &text)
		for _, e := range []ev{region(0x1000, 1024), taken(0x1000, 256, 3), {Kind: event.OutOfMemory, Size: 4096, Requested: 4000, Text: text.ID(m.Encode())}} {
			j.Emit(&e)
		}
		err := j.Err()
		if len(m) == 0 { // an empty map cannot be told from none in an event
			err = j.CompareMap(0, 0, m)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("verdict %v, want %q", err, want)
		}
	}
}
