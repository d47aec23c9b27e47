package bridge

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/golden"
	"tideline/shared/ingest/snapshot"
	"tideline/shared/ingest/snapshot/synthetic"
)

// graph is an answer to "flame", with the frames put in.
type graph struct {
	Whole, Sum []int64
	Rest       []int64
	Stacks     [][]int64
	Frames     []string
	Categories [][]string
	T          int64
	Note       string
}

func flameOf(t *testing.T, s *Session, how string, at, t0, t1 int64, lane, filter string) graph {
	t.Helper()
	q := strings.Join([]string{"flame", how, itoa(at), itoa(t0), itoa(t1), lane, filter}, "\t")
	var g graph
	if b := s.Ask(q); json.Unmarshal(b, &g) != nil || g.Whole == nil {
		t.Fatalf("%q is answered with %.200s", q, b)
	}
	return g
}

// lines is what each stack holds, by its frames and op.
func (g *graph) lines() map[string][2]int64 {
	out := map[string][2]int64{}
	for _, x := range g.Stacks {
		key := event.Category(x[2]).String() + "|" + g.Frames[x[3]]
		for _, f := range x[4:] {
			key += "\n" + g.Frames[f]
		}
		was := out[key]
		out[key] = [2]int64{was[0] + x[0], was[1] + x[1]}
	}
	return out
}

// stacked is a session with a random timeline whose tensors are stacks, and the
// events of it.
func stacked(t *testing.T, seed uint64, n, kinds int) (*Session, []event.Event, *event.Strings) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	strs := new(event.Strings)
	var stacks []event.StringID
	for range kinds {
		var frames []string
		for range 1 + r.IntN(6) {
			frames = append(frames, "f"+itoa(r.Int64N(4))+" a dir/x.py:"+itoa(r.Int64N(3)))
		}
		stacks = append(stacks, strs.ID(strings.Join(frames, "\n")))
	}
	ops := []event.StringID{0, strs.ID("Conv"), strs.ID("matMUL")}
	var events []event.Event
	var live []event.Event
	now := int64(1000)
	for i := range n {
		now += r.Int64N(3) // some share a nanosecond
		if len(live) > 0 && r.IntN(5) < 2 {
			k := r.IntN(len(live))
			e := live[k]
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
			e.Kind, e.Time = event.Free, now
			events = append(events, e)
			continue
		}
		size := int64(256 * (1 + r.IntN(40)))
		e := event.Event{
			Kind: event.Alloc, Time: now, Step: event.NoStep, Address: uint64(i+1) << 16, Size: size, Requested: size - r.Int64N(256),
			Tensor: stacks[r.IntN(kinds)], Op: ops[r.IntN(len(ops))], Category: event.Category(r.IntN(3)),
		}
		if r.IntN(10) == 0 {
			e.Tensor = 0 // a stack that was left out
		}
		events = append(events, e)
		live = append(live, e)
	}
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
	for i := range events {
		w.Emit(&events[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return opened(t, b.Bytes()), events, strs
}

// naive counts the blocks that pass, one event after the other.
func naive(events []event.Event, strs *event.Strings, from, at int64, filter string) (lines map[string][2]int64, whole, sum [2]int64) {
	live := map[uint64]*event.Event{}
	for i := range events {
		e := &events[i]
		if e.Time > at {
			break
		}
		if e.Kind == event.Free {
			delete(live, e.Address)
		} else {
			live[e.Address] = e
		}
	}
	lines = map[string][2]int64{}
	add := func(x [2]int64, n int64) [2]int64 { return [2]int64{x[0] + n, x[1] + 1} }
	for _, e := range live {
		if e.Time < from {
			continue
		}
		whole = add(whole, e.Size)
		op, stack := strs.At(e.Op), strs.At(e.Tensor)
		if filter != "" && !strings.Contains(strings.ToLower(op), filter) && !strings.Contains(strings.ToLower(stack), filter) {
			continue
		}
		sum = add(sum, e.Size)
		key := e.Category.String() + "|" + op
		if stack != "" {
			key += "\n" + stack
		}
		lines[key] = add(lines[key], e.Size)
	}
	return lines, whole, sum
}

func same(a, b map[string][2]int64) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}

// A flame graph tells of every stack what counting block after block gives, at
// any instant, of what was kept, and behind a filter.
func TestAFlameGraphEqualsANaiveCount(t *testing.T) {
	for seed := range uint64(6) {
		s, events, strs := stacked(t, seed, 3000, 40)
		p := s.slots[Current].mainPool()
		first, last := s.slots[Current].span()
		r := rand.New(rand.NewPCG(seed, 12))
		for range 25 {
			t0 := first + r.Int64N(last-first)
			t1 := t0 + 1 + r.Int64N(last-t0)
			for _, filter := range []string{"", "MatMul", "f1 a dir", "x.py:2", "nobody"} {
				for how, from := range map[string]int64{"at": 0, "kept": t0} {
					// The instant AT is the fullest of its nanosecond: with one change
					// it is what the count comes to.
					at := t1
					if how == "at" {
						at = events[r.IntN(len(events))].Time
						if p.Changes(at, at+1) > 1 {
							continue
						}
					}
					g := flameOf(t, s, how, at, t0, t1, "", filter)
					lines, whole, sum := naive(events, strs, from, at, strings.ToLower(filter))
					if !same(g.lines(), lines) {
						t.Fatalf("seed %d, %s of [%d,%d], filter %q: %d stacks, want %d\n got %v\nwant %v", seed, how, t0, at, filter, len(g.lines()), len(lines), g.lines(), lines)
					}
					if [2]int64(g.Whole) != whole || [2]int64(g.Sum) != sum || g.Rest[0] != 0 {
						t.Errorf("seed %d, %s, filter %q: whole %v, sum %v, rest %v; want %v and %v", seed, how, filter, g.Whole, g.Sum, g.Rest, whole, sum)
					}
					if how == "at" && g.Whole[0] != p.In(p.Fullest(at)).InUse {
						t.Errorf("at %d the stacks sum to %d, in use are %d", at, g.Whole[0], p.At(at).InUse)
					}
				}
			}
			g := flameOf(t, s, "peak", 0, t0, t1, "", "")
			if _, most := p.PeakPoint(t0, t1); g.Whole[0] != most && p.Changes(t0, t0+1) == 0 {
				t.Errorf("at the peak of [%d,%d) the stacks sum to %d, want %d", t0, t1, g.Whole[0], most)
			}
		}
	}
}

// More stacks than an answer holds are summed, largest first.
func TestManyStacksAreCutAndCounted(t *testing.T) {
	strs := new(event.Strings)
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
	const more = 100
	for i := range int64(maxStacks + more) {
		w.Emit(&event.Event{Kind: event.Alloc, Time: i, Step: event.NoStep, Address: uint64(i+1) << 32, Size: 1 + i, Requested: 1 + i, Tensor: strs.ID("main a.py:1\nf b.py:" + itoa(i))})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := opened(t, b.Bytes())
	g := flameOf(t, s, "at", maxStacks+more, 0, 1, "", "")
	if len(g.Stacks) != maxStacks || g.Rest[2] != more || g.Rest[1] != more || g.Rest[0] != more*(more+1)/2 {
		t.Errorf("%d stacks, the rest is %v", len(g.Stacks), g.Rest)
	}
	var sum int64
	for i, x := range g.Stacks {
		sum += x[0]
		if i > 0 && x[0] > g.Stacks[i-1][0] {
			t.Fatalf("stack %d holds more than the one before it", i)
		}
	}
	if sum+g.Rest[0] != g.Sum[0] || g.Sum[0] != g.Whole[0] {
		t.Errorf("the stacks hold %d and the rest %d, together %d of %d", sum, g.Rest[0], g.Sum[0], g.Whole[0])
	}
}

// The stacks of a snapshot are told whole, and sum to what it holds: of a real
// one, and of a made-up one of deep stacks.
func TestTheFlameGraphOfASnapshot(t *testing.T) {
	var deep bytes.Buffer
	if _, err := synthetic.Write(&deep, synthetic.Shape{Requests: 2000, Live: 300, Stacks: 50, Depth: 30}); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, in []byte, depth int) {
		t.Helper()
		snap, err := snapshot.Read(bytes.NewReader(in), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		strs := new(event.Strings)
		var b bytes.Buffer
		w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
		snap.Emit(strs, w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s := opened(t, b.Bytes())
		p := s.slots[Current].mainPool()
		_, last := s.slots[Current].span()
		g := flameOf(t, s, "at", last, 0, 1, "", "")
		if want := p.In(p.Fullest(last)).InUse; g.Sum[0] != want || want == 0 {
			t.Errorf("the stacks hold %d, in use are %d", g.Sum[0], want)
		}
		// Groups are called by the frame to blame, which is their blocks' op.
		for _, x := range g.Stacks {
			c := event.Category(x[2])
			if name := g.Categories[x[2]][0]; c != event.Unknown && name != g.Frames[x[3]] || c == event.Unknown && name != "other" {
				t.Errorf("%v is called %q, its block is of %q", c, name, g.Frames[x[3]])
			}
		}
		status := string(s.Ask("status"))
		if first := strconv.Quote(g.Categories[event.Group1][0]); !strings.Contains(status, first) || strings.Contains(status, `"group 1"`) {
			t.Errorf("the legend does not name %s: %s", first, status)
		}
		most := 0
		for _, x := range g.Stacks {
			most = max(most, len(x)-4)
		}
		if most != depth {
			t.Errorf("the deepest stack has %d frames, want %d", most, depth)
		}
	}
	t.Run("deep", func(t *testing.T) { check(t, deep.Bytes(), 30) })
	t.Run("real", func(t *testing.T) {
		inputs, _ := golden.Case(t, "25-torch-snapshot-2025-llm-full-step")
		for _, in := range inputs {
			check(t, in, 2)
		}
	})
}

// The table of what is alive keeps to the filter, and says how much passes.
func TestTheFilterOfTheLiveTable(t *testing.T) {
	s, events, strs := stacked(t, 3, 2000, 20)
	_, last := s.slots[Current].span()
	at := itoa(last)
	if got := s.slots[Current].mainPool(); got.In(got.Fullest(last)).InUse != got.At(last).InUse {
		t.Fatal("this timeline ends below the peak of its last nanosecond: it tests nothing")
	}
	_, _, sum := naive(events, strs, 0, last, "matmul")
	a := ask(t, s, "details\tlive\t"+at+"\t0\t1\t\tMATmul")
	if got, want := figureOf(t, a, "Pass the filter"), size(sum[0]); got != want {
		t.Errorf("%s pass, want %s", got, want)
	}
	table := a["tables"].([]any)[0].(map[string]any)
	if n := len(table["rows"].([]any)) + int(table["more"].(float64)); n != int(sum[1]) {
		t.Errorf("%d rows, want %d", n, sum[1])
	}
	for _, row := range table["rows"].([]any) {
		if op := row.(map[string]any)["c"].([]any)[5]; op != "matMUL" {
			t.Errorf("a row of op %v passed", op)
		}
	}
}
