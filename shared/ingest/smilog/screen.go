package smilog

import (
	"strconv"
	"strings"

	"tideline/shared/ingest/lines"
)

// screenLine reads a line of the default screen.
func (p *Parser) screenLine(num int, s string) bool {
	if strings.Contains(s, "NVIDIA-SMI ") && strings.Contains(s, "|") {
		p.screen = p.newScreen(num)
		p.table, p.row = false, nil
		p.screen.Driver = version(s, "Driver Version: ", "KMD Version: ")
		p.screen.CUDA = version(s, "CUDA Version: ", "CUDA UMD Version: ")
		return true
	}
	i := strings.IndexByte(s, '|')
	if i < 0 {
		return false
	}
	if p.screen == nil {
		// The head may be cut off; the memory cell is unmistakable.
		if used, _, ok := memoryCell(s); !ok || used < 0 || strings.Count(s, "|") < 4 {
			if !strings.Contains(s, "Processes:") || !strings.Contains(s, "GPU Memory") {
				return false
			}
		}
		p.screen = p.newScreen(num)
	}
	s = s[i+1:]
	switch {
	case strings.Contains(s, "Processes:"):
		p.table, p.row = true, nil
		p.screen.HasTable = true
		return true
	case p.table:
		return p.process(s)
	}
	return p.device(s)
}

func version(s string, labels ...string) string {
	for _, l := range labels {
		if v, ok := lines.Between(s, l, " |"); ok && v != "" && v != "N/A" {
			return v
		}
	}
	return ""
}

// memoryCell finds "12799MiB / 16280MiB".
func memoryCell(s string) (used, total int64, ok bool) {
	head, tail, ok := strings.Cut(s, "MiB /")
	if !ok {
		return 0, 0, false
	}
	i := len(head)
	for i > 0 && lines.IsDigit(head[i-1]) {
		i--
	}
	used, err1 := strconv.ParseInt(head[i:], 10, 64)
	tail = strings.TrimLeft(tail, " ")
	n, rest, ok := lines.Digits(tail)
	if err1 != nil || !ok || n > 1<<40 || used > 1<<40 || !strings.HasPrefix(rest, "MiB") {
		return 0, 0, false
	}
	return used, int64(n), true
}

// device reads the rows of a device: its first begins with the index, the
// second has the memory.
func (p *Parser) device(s string) bool {
	if used, total, ok := memoryCell(s); ok {
		g := p.row
		if g == nil {
			g = p.screen.gpu(int64(len(p.screen.GPUs)), "")
		}
		if g == nil {
			return true
		}
		p.row = nil
		p.screen.HasGPUs = true
		g.Used, g.Total, g.Free = used, total, max(0, total-used)
		g.First, g.Peak = used, used
		_, after, _ := strings.Cut(s, "MiB /")
		if _, after, ok := strings.Cut(after, "|"); ok {
			if n, rest, ok := lines.Digits(strings.TrimLeft(after, " ")); ok && strings.HasPrefix(rest, "%") && n <= 100 {
				g.Util = int64(n)
			}
		}
		return true
	}
	cells := strings.Split(s, "|")
	f := strings.Fields(cells[0])
	if len(f) < 2 || len(cells) < 2 {
		return false
	}
	index, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || index < 0 || index > 1<<20 {
		return false
	}
	g := p.screen.gpu(index, "")
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
	g.Name = strings.Join(f[1:end], " ")
	if b := strings.Fields(cells[1]); len(b) > 0 {
		g.Bus = b[0]
	}
	return true
}

// process reads a row of the process table, with or without the columns GI
// and CI.
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
	gpu, err := strconv.ParseInt(f[0], 10, 64)
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
		p.addProcess(p.screen, x)
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
