package torch_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis/cause"
	"tideline/shared/golden"
)

// goldenCase is an entry of cases.json.
type goldenCase struct {
	Name           string   `json:"name"`
	Ops            int      `json:"ops"`
	Capacity       int64    `json:"capacity"`
	MemoryFraction *float64 `json:"memory_fraction"`
	Settings       string   `json:"settings"`
	OOMRows        int      `json:"oom_rows"`
	Trace          string   `json:"trace"`
	Expected       string   `json:"expected"`
	// Of the expandable cases.
	PeakReserved  int64 `json:"peak_reserved"`
	FinalReserved int64 `json:"final_reserved"`
	Retries       int64 `json:"retries"`
	Final         *struct {
		PeakReserved           int64 `json:"peak_reserved"`
		PeakAllocated          int64 `json:"peak_allocated"`
		Segments               int64 `json:"segments"`
		PeakSegments           int64 `json:"peak_segments"`
		AllocCount             int64 `json:"alloc_count"`
		InactiveSplitBytes     int64 `json:"inactive_split_bytes"`
		InactiveSplitBytesPeak int64 `json:"inactive_split_bytes_peak"`
		InactiveSplit          int64 `json:"inactive_split"`
		NumAllocRetries        int64 `json:"num_alloc_retries"`
		NumOOMs                int64 `json:"num_ooms"`
		OversizeAllocations    int64 `json:"oversize_allocations"`
		OversizeSegments       int64 `json:"oversize_segments"`
		SmallReserved          int64 `json:"small_reserved"`
		LargeReserved          int64 `json:"large_reserved"`
	} `json:"final"`
}

type goldenCases struct {
	Cases           []goldenCase `json:"cases"`
	ExpandableCases []goldenCase `json:"expandable_cases"`
}

func loadCases(tb testing.TB, dir string) goldenCases {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var c goldenCases
	if err := json.Unmarshal(raw, &c); err != nil {
		tb.Fatal(err)
	}
	if len(c.Cases) == 0 {
		tb.Fatalf("%s names no case", dir)
	}
	for i := range c.Cases {
		c.Cases[i].Trace = c.Cases[i].Name + ".trace.csv"
		c.Cases[i].Expected = c.Cases[i].Name + ".expected.csv"
	}
	return c
}

func loadRows(tb testing.TB, path string) [][]string {
	tb.Helper()
	raw, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		raw, err = unpacked(path + ".gz")
	}
	if err != nil {
		tb.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil || len(rows) < 2 {
		tb.Fatalf("%s: %d rows, %v", path, len(rows), err)
	}
	return rows[1:]
}

func unpacked(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func number(tb testing.TB, s string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// player answers a trace in the form of the expected rows.
type player struct {
	a      *torch.Allocator
	device *recordingDevice
	events []string
	addrs  map[string]uint64
	sizes  map[string]int64
}

// recordingDevice numbers segments and reservations in their order.
type recordingDevice struct {
	*torch.Device
	bases []uint64
	sizes []int64
}

func (d *recordingDevice) Take(align, bytes int64) (uint64, int64, bool) {
	addr, n, ok := d.Device.Take(align, bytes)
	if ok {
		d.bases, d.sizes = append(d.bases, addr), append(d.sizes, bytes)
	}
	return addr, n, ok
}

func (d *recordingDevice) Reserve(bytes int64) (uint64, bool) {
	addr, ok := d.Device.Reserve(bytes)
	if ok {
		d.bases, d.sizes = append(d.bases, addr), append(d.sizes, bytes)
	}
	return addr, ok
}

func (d *recordingDevice) locate(addr uint64) (ordinal int, offset uint64) {
	for i, b := range d.bases {
		if addr >= b && addr < b+uint64(d.sizes[i]) {
			return i, addr - b
		}
	}
	return -1, 0
}

func (p *player) Trace(e torch.TraceEntry) {
	switch e.Action {
	case torch.ActionSegmentAlloc:
		k, _ := p.device.locate(e.Addr)
		p.events = append(p.events, fmt.Sprintf("+seg%d:%d", k, e.Size))
	case torch.ActionSegmentFree:
		k, _ := p.device.locate(e.Addr)
		p.events = append(p.events, fmt.Sprintf("-seg%d", k))
	case torch.ActionSegmentMap:
		p.events = append(p.events, fmt.Sprintf("map:%d", e.Size))
	case torch.ActionSegmentUnmap:
		p.events = append(p.events, fmt.Sprintf("unmap:%d", e.Size))
	default: // the rows do not tell of the others
	}
}

func newPlayer(tb testing.TB, c *goldenCase) *player {
	tb.Helper()
	s, err := torch.ParseSettings(c.Settings)
	if err != nil {
		tb.Fatal(err)
	}
	p := &player{
		device: &recordingDevice{Device: torch.NewDevice(alloc.NewCard(c.Capacity), 0)},
		addrs:  map[string]uint64{}, sizes: map[string]int64{},
	}
	o := torch.Options{Settings: s, Tracer: p}
	if c.MemoryFraction != nil {
		o.Fraction = *c.MemoryFraction
	}
	if p.a, err = torch.New(p.device, o); err != nil {
		tb.Fatal(err)
	}
	return p
}

// answer does one row and returns the expected row.
func (p *player) answer(tb testing.TB, step int, row []string) string {
	tb.Helper()
	p.events = p.events[:0]
	op, id, place := row[0], row[1], ",,"
	switch op {
	case "a":
		b, ok := p.a.AllocateOn(torch.Request{Bytes: number(tb, row[2]), Stream: torch.Stream(number(tb, row[3]))})
		if ok {
			k, offset := p.device.locate(b.Address)
			place = fmt.Sprintf("%d,%d,%d", k, offset, b.Size)
			p.addrs[id] = b.Address
		} else {
			op = "oom"
		}
	case "f":
		if err := p.a.Free(p.addrs[id]); err != nil {
			tb.Fatalf("step %d: %v", step, err)
		}
		delete(p.addrs, id)
	case "e":
		p.a.EmptyCache()
	default:
		tb.Fatalf("step %d: unknown op %q", step, op)
	}
	st := p.a.Stats()
	return fmt.Sprintf("%d,%s,%s,%s,%d,%d,%s", step, op, id, place, st.Pool, st.InUse, strings.Join(p.events, " "))
}

func checkGolden(t *testing.T, dir string, c *goldenCase) (rows int) {
	t.Helper()
	p := newPlayer(t, c)
	trace := loadRows(t, filepath.Join(dir, c.Trace))
	want := loadRows(t, filepath.Join(dir, c.Expected))
	if len(trace) != len(want) {
		t.Fatalf("%d operations, %d answers", len(trace), len(want))
	}
	ooms := 0
	for i, row := range trace {
		for k := range want[i] {
			want[i][k] = strings.TrimSpace(want[i][k])
		}
		if got, want := p.answer(t, i, row), strings.Join(want[i], ","); got != want {
			t.Fatalf("row %d, %v:\n got  %s\n want %s", i, row, got, want)
		}
		if want[i][1] == "oom" {
			ooms++
		}
		if i%101 == 0 || i == len(trace)-1 {
			if err := p.a.Check(); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
		}
	}
	if ooms != c.OOMRows {
		t.Errorf("%d failures, want %d", ooms, c.OOMRows)
	}
	p.checkFinal(t, c)
	return len(trace)
}

func (p *player) checkFinal(t *testing.T, c *goldenCase) {
	t.Helper()
	s := p.a.Statistics()
	type figure struct {
		name      string
		got, want int64
	}
	list := []figure{
		{"peak_reserved", s.ReservedBytes.All.Peak, c.PeakReserved},
		{"final_reserved", s.ReservedBytes.All.Current, c.FinalReserved},
		{"retries", s.NumAllocRetries, c.Retries},
	}
	if f := c.Final; f != nil {
		list = []figure{
			{"peak_reserved", s.ReservedBytes.All.Peak, f.PeakReserved},
			{"peak_allocated", s.AllocatedBytes.All.Peak, f.PeakAllocated},
			{"segments", s.Segment.All.Current, f.Segments},
			{"peak_segments", s.Segment.All.Peak, f.PeakSegments},
			{"alloc_count", s.Allocation.All.Allocated, f.AllocCount},
			{"inactive_split_bytes", s.InactiveSplitBytes.All.Current, f.InactiveSplitBytes},
			{"inactive_split_bytes_peak", s.InactiveSplitBytes.All.Peak, f.InactiveSplitBytesPeak},
			{"inactive_split", s.InactiveSplit.All.Current, f.InactiveSplit},
			{"num_alloc_retries", s.NumAllocRetries, f.NumAllocRetries},
			{"num_ooms", s.NumOOMs, f.NumOOMs},
			{"oversize_allocations", s.OversizeAllocations.Allocated, f.OversizeAllocations},
			{"oversize_segments", s.OversizeSegments.Allocated, f.OversizeSegments},
			{"small_reserved", s.ReservedBytes.Small.Current, f.SmallReserved},
			{"large_reserved", s.ReservedBytes.Large.Current, f.LargeReserved},
		}
	}
	for _, f := range list {
		if f.got != f.want {
			t.Errorf("%s is %d, want %d", f.name, f.got, f.want)
		}
	}
}

func TestEveryRecordedRowIsReproduced(t *testing.T) {
	dir := golden.Dir(t, "pytorch-allocator")
	cases := loadCases(t, dir)
	rows := 0
	for i := range cases.Cases {
		c := &cases.Cases[i]
		t.Run(c.Name, func(t *testing.T) { rows += checkGolden(t, dir, c) })
	}
	t.Logf("%d rows", rows)
}

func TestEveryRecordedRowWithExpandableSegmentsIsReproduced(t *testing.T) {
	dir := golden.Dir(t, "pytorch-allocator")
	cases := loadCases(t, dir)
	rows := 0
	for i := range cases.ExpandableCases {
		c := &cases.ExpandableCases[i]
		t.Run(c.Name, func(t *testing.T) { rows += checkGolden(t, dir, c) })
	}
	t.Logf("%d rows", rows)
}

// TestTheKeptRowsAreReproduced is for machines that have only the repository.
func TestTheKeptRowsAreReproduced(t *testing.T) {
	checkKept(t, "testdata/golden")
}

// TestTheRowsOfUnusualSettingsAreReproduced holds what PyTorch 2.11 itself
// answered under settings that the recorded traces above leave alone.
func TestTheRowsOfUnusualSettingsAreReproduced(t *testing.T) { checkKept(t, "testdata/unusual") }

func checkKept(t *testing.T, dir string) {
	t.Helper()
	cases := loadCases(t, dir)
	for _, list := range [][]goldenCase{cases.Cases, cases.ExpandableCases} {
		for i := range list {
			c := &list[i]
			t.Run(c.Expected, func(t *testing.T) { checkGolden(t, dir, c) })
		}
	}
}

// TestTheFiguresAndTheCauseOfEveryRecordedFailure replays the traces up to each
// failing request, holds the failure's figures against the recorded ones and
// decides its cause.
func TestTheFiguresAndTheCauseOfEveryRecordedFailure(t *testing.T) {
	dir := golden.Dir(t, "pytorch-allocator")
	cases := loadCases(t, dir)
	want := map[string]string{}
	for _, row := range loadRows(t, filepath.Join(dir, "oom-causes.csv")) {
		want[row[0]+","+row[1]] = strings.Join(row, ",")
	}
	found := 0
	for i := range cases.Cases {
		c := &cases.Cases[i]
		p := newPlayer(t, c)
		for step, row := range loadRows(t, filepath.Join(dir, c.Trace)) {
			if !strings.Contains(p.answer(t, step, row), ",oom,") {
				continue
			}
			found++
			if got := failureRow(c, step, row[1], p.a.Failure()); got != want[fmt.Sprintf("%s,%d", c.Name, step)] {
				t.Errorf("%s, step %d:\n got  %s\n want %s", c.Name, step, got, want[fmt.Sprintf("%s,%d", c.Name, step)])
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d failures, %d are recorded", found, len(want))
	}
	t.Logf("%d causes", found)
}

func failureRow(c *goldenCase, step int, id string, o *torch.OutOfMemory) string {
	limit := o.Limit
	if limit == 0 {
		limit = o.DeviceTotal
	}
	v := cause.Decide(cause.Inputs{
		Request: cause.Of(o.Requested), Rounded: cause.Of(o.Rounded), Grow: cause.Of(o.Segment),
		DeviceTotal: cause.Of(o.DeviceTotal), Limit: cause.Of(limit), Reserved: cause.Of(o.Reserved),
		InUse: cause.Of(o.Allocated), Pending: cause.Of(o.Pending), DriverFree: cause.Of(o.DriverRoom),
		LargestFree: cause.Of(o.LargestIdleSameStream),
		OtherStream: cause.Of(o.IdleOtherStreams), OtherPool: cause.Of(o.IdleOtherPool),
	})
	return fmt.Sprintf("%s,%d,%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%s,%s", c.Name, step, id, o.Requested, o.Rounded,
		o.Segment, o.Stream, limit, o.DeviceTotal, o.Reserved, o.Allocated, o.DriverRoom, o.IdleSameStream,
		o.LargestIdleSameStream, o.IdleOtherStreams, o.IdleOtherPool, v.Cause, v.Kind)
}
