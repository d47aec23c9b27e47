package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/bfc/memdump"
	"tideline/shared/ingest"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/chrometrace"
	"tideline/shared/ingest/driverlog"
	"tideline/shared/ingest/memlog"
	"tideline/shared/ingest/memorydump"
	"tideline/shared/ingest/ortlog"
	"tideline/shared/ingest/pprof"
	"tideline/shared/ingest/rmmlog"
	"tideline/shared/ingest/smilog"
	"tideline/shared/ingest/snapshot"
	snapshots "tideline/shared/ingest/snapshot/synthetic"
	"tideline/shared/ingest/steplog"
	"tideline/shared/ingest/torchlog"
	"tideline/shared/ingest/wire"
	"tideline/shared/ingest/xlalog"
	"tideline/shared/ingest/xspace"
	"tideline/shared/yardstick"
)

// source is a file to read: what a reader is timed on.
type source struct {
	bytes []byte
	units int // lines, events: what the reader's task counts
}

// reading is a reader and what it reads. The source is made when it is first
// needed, since some take longer to make than to read.
type reading struct {
	name, per string
	source    func() (source, error)
	read      func(r io.Reader) (any, error) // what it returns is what is kept of the file
}

// readers are the readers of foreign files and of our own, each on a file of
// some megabytes: made by a generator, or a real one many times over.
func readers(o *Options) ([]*task, []Line, error) {
	list := made(o)
	var remarks []Line
	if o.Goldens == "" {
		remarks = []Line{{What: "readers of texts, profiles and traces", Note: noGoldens}}
	} else {
		list = append(list, repeated(filepath.Join(o.Goldens, "cases"))...)
	}
	tasks := make([]*task, len(list))
	for i := range list {
		tasks[i] = list[i].task()
	}
	return tasks, append(remarks, Line{What: "peak", Note: fmt.Sprintf(
		"the most bytes alive after a collection, at %d places of the file and its end, without the file itself", places)}), nil
}

// task times a reader.
func (x *reading) task() *task {
	var s source
	t := &task{Task: yardstick.Task{Name: x.name, Per: x.per, N: 1}}
	t.Prepare = func() error {
		if s.bytes != nil {
			return nil
		}
		var err error
		if s, err = x.source(); err != nil {
			return fmt.Errorf("make the file: %w", err)
		}
		t.N = s.units
		return nil
	}
	t.Run = func() error {
		_, err := x.read(bytes.NewReader(s.bytes))
		return err
	}
	t.beside = func() string {
		peak, err := peakOf(s.bytes, x.read)
		if err != nil {
			return err.Error()
		}
		size := float64(len(s.bytes))
		return fmt.Sprintf("%.0f MB/s, %.1f MB, peak %.1f MB", size/(t.nanos*float64(t.N))*1e3, size/1e6, float64(peak)/1e6)
	}
	return t
}

// places is at how many places of a file the live heap is looked at.
const places = 24

// peakOf is the most bytes that are alive while a file is read, and afterwards
// with what was read of it, beyond those alive before.
func peakOf(file []byte, read func(io.Reader) (any, error)) (int64, error) {
	g := &gauge{r: bytes.NewReader(file), step: max(1, len(file)/places)}
	before := alive()
	kept, err := read(g)
	g.look()
	runtime.KeepAlive(kept)
	runtime.KeepAlive(file)
	return g.most - before, err
}

// alive is the bytes of the heap that a collection leaves.
func alive() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// gauge looks at the live heap at places of the file that passes through it.
// It does not depend on when collections happen, as a look from beside would.
type gauge struct {
	r          io.Reader
	step, left int // bytes from one place to the next, and to the next
	most       int64
}

func (g *gauge) look() { g.most = max(g.most, alive()) }

// Read implements io.Reader.
func (g *gauge) Read(p []byte) (int, error) {
	if g.left <= 0 {
		g.look()
		g.left = g.step
	}
	n, err := g.r.Read(p[:min(len(p), g.left)])
	g.left -= n
	return n, err
}

// emitted counts the events that an input tells.
type emitted int

// Emit implements event.Sink.
func (n *emitted) Emit(*event.Event) { *n++ }

// open reads a file as the page and "tideline explain" do, and tells its events.
func open(r io.Reader) (any, error) {
	in, err := ingest.Open("file", r, ingest.Limits{})
	if err != nil {
		return nil, err
	}
	var n emitted
	return in, in.Emit(new(event.Strings), &n)
}

// blocks is the way of a snapshot to the viewer: read, told, encoded.
func blocks(r io.Reader) (any, error) {
	in, err := ingest.Open("file", r, ingest.Limits{})
	if err != nil {
		return nil, err
	}
	strs := new(event.Strings)
	w := timeline.NewWriter(io.Discard, timeline.Options{Strings: strs})
	if err := in.Emit(strs, w); err != nil {
		return nil, err
	}
	return in, w.Close()
}

// made are the readers whose files are made by generators.
func made(o *Options) []reading {
	list := []reading{{"our own timeline", "event", func() (source, error) { return ownTimeline(o.Events) }, open}}
	read := func(r io.Reader) (any, error) { return snapshot.Read(r, snapshot.Options{}) }
	for _, protocol := range []int{2, 3, 4, 5} {
		list = append(list, reading{
			fmt.Sprintf("PyTorch snapshot, 100,000 requests, protocol %d", protocol), "request",
			func() (source, error) { return snapshotOf(100_000, protocol) }, read,
		})
	}
	list = append(list, reading{"the same, packed by gzip", "request", func() (source, error) {
		s, err := snapshotOf(100_000, 4)
		if err != nil {
			return s, err
		}
		s.bytes, err = packed(s.bytes)
		return s, err
	}, read})
	for _, n := range []struct {
		requests int
		text     string
	}{{10_000, "10,000"}, {100_000, "100,000"}, {1_000_000, "1,000,000"}} {
		list = append(list, reading{
			"PyTorch snapshot, " + n.text + " requests, to the blocks of a timeline", "request",
			func() (source, error) { return snapshotOf(n.requests, 4) }, blocks,
		})
	}
	return append(list,
		reading{"memory_profile.json", "snapshot", memoryProfile, func(r io.Reader) (any, error) { return xspace.ReadMemoryProfile(r, 0) }},
		reading{"memory map of TensorFlow's allocator", "chunk", memoryMap, readMap},
	)
}

func ownTimeline(events int) (source, error) {
	var b bytes.Buffer
	strs := new(event.Strings)
	w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
	n := 0
	synthetic.Generate(synthetic.Options{Events: events, Seed: 1, Dynamic: true}, strs, event.SinkFunc(func(e *event.Event) { w.Emit(e); n++ }))
	err := w.Close()
	return source{b.Bytes(), n}, err
}

func snapshotOf(requests, protocol int) (source, error) {
	var b bytes.Buffer
	_, err := snapshots.Write(&b, snapshots.Shape{Requests: requests, Protocol: protocol})
	return source{b.Bytes(), requests}, err
}

func packed(b []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err := z.Close()
	return out.Bytes(), err
}

// memoryProfile writes the page of TensorFlow's profiler, whose lists are cut
// to a thousand entries by TensorFlow, with twenty times as many.
func memoryProfile() (source, error) {
	const n = 20_000
	var b strings.Builder
	b.WriteString(`{"memoryProfilePerAllocator":{"GPU_0_bfc":{"memoryProfileSnapshots":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"timeOffsetPs":"%d","aggregationStats":{"stackReservedBytes":"0","heapAllocatedBytes":"%d","freeMemoryBytes":"%d",`+
			`"fragmentation":0.25,"peakBytesInUse":"%d"},"activityMetadata":{"memoryActivity":"ALLOCATION","requestedBytes":"1024",`+
			`"allocationBytes":"1024","address":"%d","tfOpName":"model/layer_%d/MatMul","stepId":"%d","regionType":"output","dataType":"float","tensorShape":"[16,16]"}}`,
			1000*i, 1<<20+1024*i, 1<<30-1024*i, 1<<20+1024*i, 0x7f0000000000+1024*i, i%97, i/1000)
	}
	b.WriteString(`],"profileSummary":{"peakBytesUsageLifetime":"21500000","peakStats":{"stackReservedBytes":"0","heapAllocatedBytes":"21500000",` +
		`"freeMemoryBytes":"1050000000","fragmentation":0.25,"peakBytesInUse":"21500000"},"peakStatsTimePs":"19999000","memoryCapacity":"1073741824"},` +
		`"activeAllocations":[],"specialAllocations":[]}},"numHosts":1,"memoryIds":["GPU_0_bfc"]}`)
	return source{[]byte(b.String()), n}, nil
}

// memoryMap writes the map of a pool of a hundred thousand chunks, every other
// one of them free, as TensorFlow's allocator does.
func memoryMap() (source, error) {
	const n, size = 100_000, 4096
	m := bfc.Map{Name: "GPU_0_bfc", Regions: []bfc.MapRegion{{Address: 0x7f0000000000, Size: n * size}}}
	bin := memorydump.BinOf(size)
	for i := range n {
		c := bfc.MapChunk{Address: 0x7f0000000000 + uint64(i)*size, Size: size, Requested: size - 100, Bin: bin, ID: -1}
		if i%2 == 0 {
			c.Bin, c.ID = -1, int64(i)
		}
		m.Regions[0].Chunks = append(m.Regions[0].Chunks, c)
	}
	m.Bins[bin] = bfc.BinSummary{BytesInUse: n / 2 * size, Bytes: n * size, ChunksInUse: n / 2, Chunks: n}
	m.Stats.InUse = n / 2 * size
	return source{memdump.Append(nil, &m), n}, nil
}

// readMap reads a memory map, and turns it into what is judged.
func readMap(r io.Reader) (any, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	m, err := memorydump.Decode(b)
	if err != nil {
		return nil, err
	}
	d := m.Dump(false)
	if !d.ListComplete {
		return nil, errors.New("the memory map contradicts itself")
	}
	return []any{m, d}, nil
}

// textBytes is about how long a text made of many times the same is.
const textBytes = 4 << 20

// repeated are the readers whose files are real ones, many times over.
func repeated(cases string) []reading {
	file := func(names ...string) func() ([]byte, error) {
		return sync.OnceValues(func() ([]byte, error) { return os.ReadFile(filepath.Join(append([]string{cases}, names...)...)) })
	}
	text := func(name string, in func() ([]byte, error), head int, read func(io.Reader) (any, error)) reading {
		return reading{name, "line", func() (source, error) { return manyLines(in, head) }, read}
	}
	steps, dump := file("32-tf-2024-growth-per-step", "input.txt"), file("05-tf-bfc-2023-cifar-fragmented", "input.log")
	return []reading{
		text("BFC dumps", dump, 0, func(r io.Reader) (any, error) { return bfclog.Read(r) }),
		text("XLA reports", file("12-xla-tpu-2019-padding-32x", "input.log"), 0, func(r io.Reader) (any, error) { return xlalog.Read(r) }),
		text("PyTorch messages", file("20-torch-2025-private-pools-fragmented", "input.txt"), 0, func(r io.Reader) (any, error) { return torchlog.Read(r) }),
		text("PyTorch summaries", file("23-torch-2020-summary-and-pinned-segment", "summary.txt"), 0, func(r io.Reader) (any, error) { return torchlog.Read(r) }),
		text("ONNX Runtime arenas", file("14-ort-2024-arena-limit-reached", "input.log"), 0, func(r io.Reader) (any, error) { return ortlog.Read(r) }),
		text("RMM rows", file("28-rmm-2020s-current-columns", "rmm.csv"), 1, func(r io.Reader) (any, error) { return rmmlog.Read(r, nil) }),
		text("nvidia-smi screens", file("29-smi-2019-held-but-no-process", "smi.txt"), 0, func(r io.Reader) (any, error) { return smilog.Read(r) }),
		text("nvidia-smi rows", file("31-smi-2026-left-over-workers", "apps.csv"), 1, func(r io.Reader) (any, error) { return smilog.Read(r) }),
		text("__LOG_MEMORY__", file("33-tf-log-memory-line-kinds", "input.log"), 0, func(r io.Reader) (any, error) { return memlog.Read(r, nil) }),
		text("lines of training steps", steps, 0, func(r io.Reader) (any, error) { return steplog.Read(r) }),
		text("a driver's lines", file("06-tf-bfc-2025-growth-driver-refuses", "input.log"), 0, func(r io.Reader) (any, error) { return driverlog.Read(r) }),
		{"any text: steps, and a BFC dump at the end", "line", func() (source, error) {
			s, err := manyLines(steps, 0)
			if err != nil {
				return s, err
			}
			end, err := dump()
			s.bytes = append(s.bytes, end...)
			s.units += bytes.Count(end, []byte("\n"))
			return s, err
		}, open},
		{"XSpace", "KiB", manyFields(file("35-tf-xspace-2020-resnet-near-limit", "plugins_profile_run_host.xplane.pb.gz"), 1), func(r io.Reader) (any, error) { return xspace.Read(r, 0) }},
		{"Chrome trace", "KiB", manyTraces(file("36-chrome-trace-tf-2020-copies", "trace.json.gz")), func(r io.Reader) (any, error) { return chrometrace.Read(r, 0) }},
		{"pprof", "KiB", manyFields(file("37-jax-device-memory-pprof", "memory.prof"), 2), func(r io.Reader) (any, error) { return pprof.Read(r, 0) }},
	}
}

// manyLines is a text over and over, but for its first head lines, which stand
// at its beginning only.
func manyLines(in func() ([]byte, error), head int) (source, error) {
	b, err := in()
	if err != nil {
		return source{}, err
	}
	b = append(bytes.TrimRight(b, "\n"), '\n')
	body := b
	for range head {
		_, body, _ = bytes.Cut(body, []byte("\n"))
	}
	out := append([]byte(nil), b[:len(b)-len(body)]...)
	for len(out) < textBytes && len(body) > 0 {
		out = append(out, body...)
	}
	return source{out, bytes.Count(out, []byte("\n"))}, nil
}

// manyFields is a protobuf message with the items of one of its repeated
// fields over and over.
func manyFields(in func() ([]byte, error), number int32) func() (source, error) {
	return func() (source, error) {
		b, err := unpacked(in)
		if err != nil {
			return source{}, err
		}
		var items []byte
		r := wire.New(b)
		for r.Next() {
			if f := r.Field(); f.Number == number && f.Type == wire.Bytes {
				items = binary.AppendUvarint(items, uint64(number)<<3|uint64(wire.Bytes))
				items = append(binary.AppendUvarint(items, uint64(len(f.Data))), f.Data...)
			}
		}
		if r.Err() != nil || len(items) == 0 {
			return source{}, fmt.Errorf("the message has no field %d: %w", number, r.Err())
		}
		out := append(bytes.Clone(b), bytes.Repeat(items, textBytes/len(items))...)
		return source{out, len(out) >> 10}, nil
	}
}

// manyTraces is a trace whose events come over and over.
func manyTraces(in func() ([]byte, error)) func() (source, error) {
	return func() (source, error) {
		b, err := unpacked(in)
		if err != nil {
			return source{}, err
		}
		from := bytes.Index(b, []byte(`"traceEvents"`))
		to := bytes.LastIndexByte(b, ']')
		if from < 0 || to < from {
			return source{}, fmt.Errorf("the trace has no events")
		}
		from += bytes.IndexByte(b[from:], '[') + 1
		events := bytes.TrimRight(bytes.TrimSpace(b[from:to]), ", \n")
		out := append([]byte(nil), b[:from]...)
		for len(out) < textBytes {
			out = append(append(out, events...), ",\n"...)
		}
		out = append(append(out, events...), b[to:]...)
		return source{out, len(out) >> 10}, nil
	}
}

func unpacked(in func() ([]byte, error)) ([]byte, error) {
	b, err := in()
	if err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return b, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
