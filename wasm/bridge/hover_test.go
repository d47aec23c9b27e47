package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"tideline/shared/draw"
	"tideline/shared/store"
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

// TestABlockOlderThanTheRecordingHasNoAge: of a snapshot's blocks that were there
// when it began nobody knows since when, and their frames stay apart.
func TestABlockOlderThanTheRecordingHasNoAge(t *testing.T) {
	s := NewSession()
	openExample(t, s, "small-model.pickle")
	sl := s.slots[Current]
	first, last := sl.tl.Span()
	p := sl.mainPool()
	early, later := -1, -1
	for i := range p.Allocs() {
		if al := p.Alloc(i); al.Death == store.Alive && strings.Contains(sl.tl.Text(al.Tensor), "\n") && al.Birth == first {
			early = i
		} else if al.Birth > first {
			later = i
		}
	}
	if early < 0 || later < 0 {
		t.Fatal("the file has no such blocks")
	}
	hit := func(i int) (title, lives string) {
		s.out.b = s.out.b[:0]
		a := s.out.open()
		s.hit(a, sl, &draw.Hit{Kind: draw.AllocHit, Pool: p.Index, Index: i, Count: 1, Time: last})
		a.close()
		var v struct {
			Hit struct {
				Title string
				Lines [][2]string
			}
		}
		if err := json.Unmarshal(a.b, &v); err != nil {
			t.Fatal(err)
		}
		for _, l := range v.Hit.Lines {
			if l[0] == "lives" {
				lives = l[1]
			}
		}
		return v.Hit.Title, lives
	}
	if title, lives := hit(early); lives != "since the recording began, or before" || !strings.Contains(title, " › ") || strings.Contains(title, "\n") {
		t.Errorf("a block from before is %q and lives %q", title, lives)
	}
	if _, lives := hit(later); !strings.Contains(lives, "from "+clock(p.Alloc(later).Birth)) {
		t.Errorf("a block of the recording lives %q", lives)
	}
	rows := ask(t, s, "details\tlive\t"+itoa(last)+"\t0\t"+itoa(last)+"\t\t")["tables"].([]any)[0].(map[string]any)["rows"].([]any)
	unknown := 0
	for _, r := range rows {
		c := r.(map[string]any)["c"].([]any)
		if strings.Contains(c[0].(string), "\n") {
			t.Errorf("a row is called %q", c[0])
		}
		if c[7] == nil {
			unknown++
		}
	}
	if unknown == 0 || unknown == len(rows) {
		t.Errorf("%d of %d ages are unknown", unknown, len(rows))
	}
}
