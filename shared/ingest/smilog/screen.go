package smilog

import (
	"strconv"
	"strings"

	"tideline/shared/ingest/lines"
)

// screenLine reads a line of the default screen.
func (p *Parser) screenLine(num int, s string) bool {
	s = withoutBar(s)
	i := strings.IndexByte(s, '|')
	if i < 0 {
		return p.border(s)
	}
	if strings.Contains(s, "NVIDIA-SMI ") {
		p.openScreen(num)
		p.screen.Driver = version(s, "Driver Version: ", "KMD Version: ")
		p.screen.CUDA = version(s, "CUDA Version: ", "CUDA UMD Version: ")
		return true
	}
	if p.screen == nil && !p.headless(num, s) {
		return false
	}
	s = s[i+1:]
	switch {
	case strings.HasPrefix(s, "="):
		p.ruled = p.table
		return p.table
	case strings.Contains(s, "rocesses:"), tableHead(s):
		p.table, p.ruled, p.row = true, false, nil
		if p.screen.HasTable = p.screen.HasTable || tableHead(s); p.screen.HasTable {
			p.screen.Open = true
		}
		return true
	case p.table:
		return p.process(s)
	}
	return p.device(s)
}

// withoutBar takes the mark of a collector that ends in a bar of its own from a
// line of a table: "web-1  | |  0  Tesla T4 …" and "web-1  | +------+".
func withoutBar(s string) string {
	head, rest, ok := strings.Cut(s, "|")
	if t := strings.TrimLeft(rest, " "); ok && strings.TrimSpace(head) != "" && (strings.HasPrefix(t, "|") || strings.HasPrefix(t, "+-")) {
		return t
	}
	return s
}

// tableHead says whether the words are those above a table of processes.
func tableHead(s string) bool {
	return strings.Contains(s, "PID") && strings.Contains(s, "Process name")
}

// openScreen begins another screen.
func (p *Parser) openScreen(num int) {
	p.screen = p.newScreen(num)
	p.table, p.ruled, p.row, p.above = false, false, nil, ""
}

// border reads the line that closes a table of processes.
func (p *Parser) border(s string) bool {
	p.above = ""
	i := strings.IndexByte(s, '+')
	if p.screen == nil || !p.table || i < 0 || !strings.HasPrefix(s[i:], "+-") || strings.Trim(s[i:], "+-= \t") != "" {
		return false
	}
	if p.ruled {
		p.table, p.ruled, p.screen.Open = false, false, false
	}
	return true
}

// headless opens a screen whose head is cut off. The memory cell is
// unmistakable, and the line above it names the device; the heading of the
// processes is too.
func (p *Parser) headless(num int, s string) bool {
	above := p.above
	p.above = ""
	switch used, _, ok := memoryCell(s); {
	case ok && used >= 0 && strings.Contains(s, "MiB /") && strings.Count(s, "|") >= 4:
		if above != "" {
			p.openScreen(num - 1)
			p.device(above)
			return true
		}
	case processRow(s):
		p.openScreen(num)
		p.table, p.ruled = true, true
		return true
	case tableHead(s), strings.Contains(s, "rocesses:") && strings.Contains(s, "GPU Memory"):
	default:
		if strings.Contains(s, "0000:") {
			p.above = s[strings.IndexByte(s, '|')+1:]
		}
		return false
	}
	p.openScreen(num)
	return true
}

// processRow says whether a line is a row of the table of processes and nothing
// else, by its columns from the first to the last bar.
func processRow(s string) bool {
	t := strings.TrimSpace(s)
	if !strings.HasPrefix(t, "|") || !strings.HasSuffix(t, "MiB |") || strings.Count(t, "|") != 2 {
		return false
	}
	f := strings.Fields(strings.Trim(t, "|"))
	for k := 2; k <= 4 && k < len(f)-1; k++ {
		switch f[k] {
		case "C", "G", "C+G", "M+C", "M":
			_, err1 := strconv.ParseInt(f[0], 10, 32)
			_, err2 := strconv.ParseInt(f[k-1], 10, 64)
			return err1 == nil && err2 == nil
		}
	}
	return false
}

func version(s string, labels ...string) string {
	for _, l := range labels {
		if v, ok := lines.Between(s, l, " |"); ok && v != "" && v != "N/A" {
			return v
		}
	}
	return ""
}

// memoryCell finds "12799MiB / 16280MiB"; drivers before 331 wrote MB.
func memoryCell(s string) (used, total int64, ok bool) {
	unit := "MiB"
	head, tail, ok := strings.Cut(s, "MiB /")
	if !ok {
		unit = "MB"
		if head, tail, ok = strings.Cut(s, "MB /"); !ok {
			return 0, 0, false
		}
	}
	i := len(head)
	for i > 0 && lines.IsDigit(head[i-1]) {
		i--
	}
	used, err1 := strconv.ParseInt(head[i:], 10, 64)
	tail = strings.TrimLeft(tail, " ")
	n, rest, ok := lines.Digits(tail)
	if err1 != nil || !ok || n > 1<<40 || used > 1<<40 || !strings.HasPrefix(rest, unit) {
		return 0, 0, false
	}
	return used, int64(n), true
}

// device reads the rows of a device: its first begins with the index, the
// second has the memory.
func (p *Parser) device(s string) bool {
	cells := strings.Split(s, "|")
	f := strings.Fields(cells[0])
	if used, total, ok := memoryCell(s); ok {
		if p.mig(f, cells, used, total) {
			return true
		}
		g := p.row
		if g == nil {
			g = p.screen.gpu(int64(len(p.screen.GPUs)), "", "")
		}
		if g == nil {
			return true
		}
		p.row = nil
		p.screen.HasGPUs = true
		g.Used, g.Total, g.Free = used, total, max(0, total-used)
		g.First, g.Peak = used, used
		_, after, _ := strings.Cut(s, "B /")
		if _, after, ok := strings.Cut(after, "|"); ok {
			if n, rest, ok := lines.Digits(strings.TrimLeft(after, " ")); ok && strings.HasPrefix(rest, "%") && n <= 100 {
				g.Util = int64(n)
			}
		}
		return true
	}
	if len(f) < 2 || len(cells) < 2 {
		return false
	}
	index, err := strconv.ParseInt(strings.TrimSuffix(f[0], "."), 10, 64)
	if err != nil || index < 0 || index > 1<<20 || !strings.ContainsAny(cells[1], ":.") {
		return false
	}
	g := p.screen.gpu(index, "", "")
	if g == nil {
		return true
	}
	p.row = g
	end := len(f)
	switch f[end-1] {
	case "On", "Off", "TCC", "WDDM", "N/A", "ERR!", "WDDM-CC":
		g.WDDM = f[end-1] == "WDDM"
		end--
	}
	g.Name = strings.Join(f[1:max(1, end)], " ")
	if end == 1 { // the name itself is ERR!
		g.Name = f[1]
	}
	if b := strings.Fields(cells[1]); len(b) > 0 {
		g.Bus = b[0]
	}
	return true
}

// mig reads the two rows of an instance of a device: its numbers and memory,
// then its window for the host, which is no memory of it.
func (p *Parser) mig(f, cells []string, used, total int64) bool {
	if len(f) == 0 && len(cells) > 1 {
		_, _, in := memoryCell(cells[1])
		return in
	}
	if len(f) != 4 {
		return false
	}
	var n [4]int64
	for i := range n {
		v, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil || v < 0 {
			return false
		}
		n[i] = v
	}
	if len(p.screen.MIG) < maxGPUs {
		p.screen.MIG = append(p.screen.MIG, Instance{GPU: n[0], GI: n[1], CI: n[2], Device: n[3], Used: used, Total: total})
	}
	p.row = nil
	return true
}

// process reads a row of the process table, with or without the columns GI
// and CI, and without that of the type as before driver 346.
func (p *Parser) process(s string) bool {
	s = strings.TrimRight(strings.TrimSpace(s), "|")
	f := strings.Fields(s)
	switch {
	case strings.Contains(s, "No running processes found"):
		return true
	case strings.Contains(s, "Not Supported"):
		p.screen.Refused = "Not Supported"
		return true
	case len(f) < 4:
		return false
	}
	gpu, err := strconv.ParseInt(strings.TrimSuffix(f[0], "."), 10, 64)
	if err != nil {
		return false // the heading
	}
	for k := 2; k <= 4 && k < len(f)-1; k++ {
		switch f[k] {
		case "C", "G", "C+G", "M+C", "M":
		default:
			continue
		}
		pid, err := strconv.ParseInt(f[k-1], 10, 64)
		if err != nil {
			continue
		}
		x := Process{GPU: gpu, PID: pid, Type: f[k], Used: mib(f[len(f)-1])}
		x.Name = strings.Join(f[k+1:len(f)-1], " ")
		p.screen.HasTable = true
		p.addProcess(p.screen, x)
		return true
	}
	pid, err := strconv.ParseInt(f[1], 10, 64)
	if used := mib(f[len(f)-1]); err == nil && used >= 0 {
		p.screen.HasTable = true
		p.addProcess(p.screen, Process{GPU: gpu, PID: pid, Used: used, Name: strings.Join(f[2:len(f)-1], " ")})
		return true
	}
	return false
}

// mib reads "5371MiB" or "5371 MiB" or "5371"; -1 for anything else.
func mib(s string) int64 {
	s = strings.TrimSpace(s)
	n, rest, ok := lines.Digits(s)
	rest = strings.TrimSpace(rest)
	if !ok || n > 1<<40 || rest != "" && rest != "MiB" && rest != "MB" {
		return -1
	}
	return int64(n)
}
