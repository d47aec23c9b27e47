package smilog

import (
	"strconv"
	"strings"

	"tideline/shared/ingest/lines"
)

// column is what a field of a CSV table holds.
type column uint8

const (
	other column = iota
	timestamp
	index
	name
	uuid
	bus
	driver
	total
	used
	free
	reserved
	util
	pid
	processName
	processUsed
	gpuUUID
)

var columns = []struct {
	name   string
	column column
}{
	{"timestamp", timestamp},
	{"index", index},
	{"name", name},
	{"gpu_name", name},
	{"uuid", uuid},
	{"gpu_uuid", gpuUUID},
	{"pci.bus_id", bus},
	{"gpu_bus_id", bus},
	{"driver_version", driver},
	{"memory.total", total},
	{"memory.used", used},
	{"memory.free", free},
	{"memory.reserved", reserved},
	{"utilization.gpu", util},
	{"pid", pid},
	{"process_name", processName},
	{"used_gpu_memory", processUsed},
	{"used_memory", processUsed},
}

// csvLine reads a header, or a row under one.
func (p *Parser) csvLine(num int, s string) bool {
	s = lines.StripTag(s)
	if strings.IndexByte(s, ',') < 0 && len(p.cols) != 1 && !strings.HasPrefix(s, "memory.") {
		if p.cols != nil && strings.TrimSpace(s) != "" {
			p.cols = nil // something else follows
		}
		return false
	}
	if cols, ok := heading(s); ok {
		p.openCSV(num, cols)
		return true
	}
	if p.cols == nil {
		return p.bareProcess(num, s)
	}
	if p.csvRow(s) {
		return true
	}
	if p.report.BadLine == 0 {
		p.report.BadLine, p.report.Bad = num, s[:min(len(s), 80)]
	}
	p.cols = nil
	return false
}

// heading recognises a header by its words: memory figures, or processes.
func heading(s string) ([]column, bool) {
	if len(s) > 4096 || !strings.Contains(s, "memory") && !strings.Contains(s, "pid") {
		return nil, false
	}
	var cols []column
	known, memory := 0, false
	for part := range strings.SplitSeq(s, ",") {
		word := strings.TrimSpace(part)
		word, _, _ = strings.Cut(word, " [")
		if len(cols) == 0 {
			word = lines.FirstCell(word)
		}
		c := other
		for _, k := range columns {
			if k.name == word {
				c = k.column
				known++
			}
		}
		memory = memory || c == total || c == used || c == free || c == processUsed || c == pid
		cols = append(cols, c)
	}
	alone := len(cols) == 1 && known == 1 && strings.HasSuffix(strings.TrimSpace(s), " [MiB]")
	return cols, memory && (known >= 2 || alone) && known*2 > len(cols)
}

func (p *Parser) openCSV(num int, cols []column) {
	p.cols, p.apps = cols, false
	for _, c := range cols {
		if c == pid || c == processName || c == processUsed {
			p.apps = true
		}
	}
	s := p.csv
	// A second table of the same kind is another state.
	if s == nil || p.apps && s.HasTable && len(s.Processes) > 0 || !p.apps && s.HasGPUs && len(s.GPUs) > 0 && !p.repeats() {
		s = p.newScreen(num)
		s.CSV = true
		p.csv = s
	}
	if p.apps {
		s.HasTable = true
	} else {
		s.HasGPUs = true
	}
}

// repeats: a header that is printed again in the middle of repeated rows.
func (p *Parser) repeats() bool { return p.csv.Samples > 1 }

func (p *Parser) csvRow(s string) bool {
	f := strings.Split(s, ",")
	if len(f) < len(p.cols) {
		return false
	}
	if len(f) > len(p.cols) { // a process name with commas
		f = rejoin(f, p.cols)
		if f == nil {
			return false
		}
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	if p.cols[0] == pid || p.cols[0] == index {
		f[0] = lines.FirstCell(f[0])
	}
	if p.apps {
		return p.appRow(f)
	}
	return p.gpuRow(f)
}

func rejoin(f []string, cols []column) []string {
	for i, c := range cols {
		if c == processName {
			extra := len(f) - len(cols)
			out := append([]string{}, f[:i]...)
			out = append(out, strings.Join(f[i:i+extra+1], ","))
			return append(out, f[i+extra+1:]...)
		}
	}
	return nil
}

func (p *Parser) appRow(f []string) bool {
	x := Process{GPU: -1, PID: -1, Used: -1}
	for i, c := range p.cols {
		switch c {
		case pid:
			n, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil {
				return false
			}
			x.PID = n
		case processName:
			x.Name = f[i]
		case processUsed:
			x.Used = mib(f[i])
		case gpuUUID, uuid:
			x.UUID = f[i]
		case timestamp:
			p.csv.Time = f[i]
		default:
		}
	}
	p.addProcess(p.csv, x)
	return true
}

func (p *Parser) gpuRow(f []string) bool {
	x := GPU{Index: -1, Total: -1, Used: -1, Free: -1, Reserved: -1, Util: -1}
	figures := 0
	for i, c := range p.cols {
		switch c {
		case index:
			n, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil {
				return false
			}
			x.Index = n
		case name:
			x.Name = f[i]
		case uuid, gpuUUID:
			x.UUID = f[i]
		case bus:
			x.Bus = f[i]
		case driver:
			p.csv.Driver = f[i]
		case timestamp:
			p.csv.Time = f[i]
		case total:
			x.Total = mib(f[i])
			figures++
		case used:
			x.Used = mib(f[i])
			figures++
		case free:
			x.Free = mib(f[i])
			figures++
		case reserved:
			x.Reserved = mib(f[i])
		case util:
			x.Util = mib(strings.TrimSpace(strings.TrimSuffix(f[i], "%")))
		default:
		}
	}
	if figures == 0 || x.Total < 0 && x.Used < 0 && x.Free < 0 && !strings.Contains(strings.Join(f, ","), "[") {
		return false
	}
	p.sample(x)
	return true
}

// sample files a row: the newest figures of a device, and how far they went.
func (p *Parser) sample(x GPU) {
	i := x.Index
	if i < 0 && x.UUID == "" && x.Bus == "" {
		i = 0 // none of them asked for: one device is taken for granted
		p.csv.Nameless = true
	}
	g := p.csv.gpu(i, x.UUID, x.Bus)
	if g == nil {
		return
	}
	i = g.Index
	first, peak, past, stride, seen := g.First, g.Peak, g.Past, g.stride, g.seen
	if first < 0 {
		first = x.Used
	}
	x.Index = i
	*g = x
	g.First, g.Peak, g.Past, g.stride, g.seen = first, max(peak, x.Used), past, stride, seen
	time, ok := lines.Stamp(p.csv.Time)
	if !ok {
		time = -1
	}
	g.past(time, x.Used)
	if g == &p.csv.GPUs[0] {
		p.csv.Samples++
	}
}

// bareProcess reads a row "PID, NAME, N MiB" of a query without a header.
func (p *Parser) bareProcess(num int, s string) bool {
	if !strings.HasSuffix(strings.TrimRight(s, " \t"), " MiB") {
		return false
	}
	f := strings.Split(s, ",")
	if len(f) < 3 {
		return false
	}
	id, err := strconv.ParseInt(strings.TrimSpace(f[0]), 10, 64)
	n := mib(f[len(f)-1])
	if err != nil || id <= 0 || n < 0 {
		return false
	}
	for _, name := range f[1 : len(f)-1] {
		if strings.HasSuffix(name, " MiB") {
			return false // figures of devices, whose meaning is not told
		}
	}
	if p.csv == nil {
		p.csv = p.newScreen(num)
		p.csv.CSV = true
	}
	p.csv.HasTable = true
	p.addProcess(p.csv, Process{GPU: -1, PID: id, Name: strings.TrimSpace(strings.Join(f[1:len(f)-1], ",")), Used: n})
	return true
}
