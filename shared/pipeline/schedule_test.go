package pipeline

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"testing"

	"tideline/protocol/event"
)

var update = flag.Bool("update", false, "renew the recorded schedules")

// Pipelines of slices, map, shuffle, batch and prefetch keep their schedule,
// to the order of their events: recorded before there were other stages.
func TestSchedulesAreAsRecorded(t *testing.T) {
	var got bytes.Buffer
	r := rand.New(rand.NewPCG(77, 78))
	for i := range 200 {
		s := Settings{
			Elements: 1 + r.IntN(30), First: r.IntN(3), Epochs: r.IntN(4), OpenCost: r.Int64N(20), FetchCost: r.Int64N(5),
			Map:     Map{Parallel: r.IntN(6), Cost: r.Int64N(30), Cores: r.IntN(4)},
			Shuffle: r.IntN(20), Seed: r.Uint64(), Batch: []int{1 + r.IntN(6), 1 + r.IntN(6)}, Batches: 1 + r.IntN(40),
			CopyCost: r.Int64N(3), Prefetch: r.IntN(6) - 1, ElementBytes: 10, SourceBytes: 4, DropRemainder: r.IntN(2) == 0,
			RAMBudget: int64(r.IntN(2) * 300),
		}
		fmt.Fprintf(&got, "%d %016x\n", i, scheduleHash(t, s, r))
	}
	const file = "testdata/schedules.txt"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, wanted := bytes.Split(got.Bytes(), []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range wanted {
		if i >= len(lines) || !bytes.Equal(lines[i], wanted[i]) {
			t.Errorf("pipeline %d: %s, recorded %s", i, lines[i], wanted[i])
		}
	}
}

// scheduleHash runs a pipeline with a consumer of random pace and sums up its
// batches, its events and the memory it holds.
func scheduleHash(t *testing.T, s Settings, r *rand.Rand) uint64 {
	t.Helper()
	h := fnv.New64a()
	var strings event.Strings
	m, err := New(s, event.SinkFunc(func(e *event.Event) { fmt.Fprintf(h, "%+v\n", *e) }), &strings)
	if err != nil {
		t.Fatal(err)
	}
	for now := int64(0); ; now += r.Int64N(150) {
		if m.Pending() <= now {
			m.Advance(now)
		}
		b, err := m.Next(now)
		if err != nil {
			break
		}
		fmt.Fprintf(h, "%+v\n", b)
		now = b.Ready
	}
	m.Advance(1 << 60)
	for i, b := range s.Buffers(s.Limit()) {
		fmt.Fprintf(h, "%c{Stage:%s Bytes:%d Count:%d}", "[ "[min(i, 1)], b.Stage, b.Bytes, b.Count)
	}
	fmt.Fprintln(h, "]")
	for id := range strings.Len() {
		fmt.Fprintln(h, strings.At(event.StringID(id)))
	}
	return h.Sum64()
}
