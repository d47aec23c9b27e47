package bridge

import (
	"strings"
	"testing"

	"tideline/shared/draw"
)

// Over a stack the pointer finds a block by its name, with what its category
// holds besides, or how many blocks are too thin to be told apart.
func TestAStackTellsTheBlockUnderThePointer(t *testing.T) {
	s := opened(t, made(t, 20_000))
	first, last := s.slots[Current].span()
	s.Draw(Lanes, 968, 500, 1, first, first+(last-first)/20, 0)
	sl := s.slots[Current]
	var lane *draw.Lane
	for i := range s.lanes {
		if s.lanes[i].Kind == draw.MemoryLane && s.lanes[i].Pool == sl.mainPool().Index {
			lane = &s.lanes[i]
		}
	}
	p := sl.mainPool()
	blocks, merged := 0, 0
	for x := 4; x < 960; x += 12 {
		for y := lane.Y + lane.H - 2; y > lane.Y; y -= 3 {
			answer := ask(t, s, "hover\t"+itoa(int64(x))+"\t"+itoa(int64(y))+"\t0")
			hit, ok := answer["hit"].(map[string]any)
			if !ok {
				continue
			}
			said := map[string]string{}
			for _, l := range hit["lines"].([]any) {
				kv := l.([]any)
				said[kv[0].(string)] = kv[1].(string)
			}
			h := draw.HitTest(sl.tl, &s.pictures[Lanes].view, x, y)
			class := p.CategoryName(h.Category)
			switch {
			case h.Kind != draw.MemoryHit:
			case h.Index >= 0:
				a := p.Alloc(h.Index)
				if hit["title"] != sl.tl.Text(a.Tensor) || said["size"] != size(a.Size) || said["op"] != sl.tl.Text(a.Op) || said["address"] != address(a.Address) ||
					said["age"] != clock(h.Time-a.Birth) || said["lives"] == "" || said[kindWord(h.Category)+" holds"] != size(p.In(h.Moment).ByCategory[h.Category]) {
					t.Fatalf("(%d,%d) is %q, %v; want block %+v of %s", x, y, hit["title"], said, a, class)
				}
				blocks++
			case h.InBand:
				if hit["title"] != heading(p, h.Category) || said["holds"] != size(h.Size) || !strings.HasPrefix(said["here"], size(h.Rest)+" in "+itoa(int64(h.Merged))+" blocks") {
					t.Fatalf("(%d,%d) is %q, %v; want %d blocks of %s", x, y, hit["title"], said, h.Merged, class)
				}
				merged++
			}
		}
	}
	if blocks < 100 || merged < 10 {
		t.Errorf("%d points on blocks, %d on what is merged", blocks, merged)
	}
}
