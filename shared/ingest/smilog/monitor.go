package smilog

import (
	"strconv"
	"strings"
)

// monitorLine reads the columns of dmon and pmon, named by a comment line.
func (p *Parser) monitorLine(num int, s string) bool {
	t := strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(t, "#"); ok {
		f := strings.Fields(rest)
		if len(f) < 3 {
			return false
		}
		at := 0
		for at < len(f) && (f[at] == "Date" || f[at] == "Time") {
			at++
		}
		if at < len(f) && f[at] == "gpu" {
			p.openMonitor(num, f)
			return true
		}
		return p.mon != nil && strings.HasPrefix(f[at%len(f)], "Idx") // the units
	}
	if p.mon == nil {
		return false
	}
	f := strings.Fields(t)
	if len(f) < len(p.mon) || !p.monitorRow(f) {
		p.mon = nil
		return false
	}
	return true
}

func (p *Parser) openMonitor(num int, cols []string) {
	again := p.mon != nil && strings.Join(p.mon, " ") == strings.Join(cols, " ")
	p.mon = cols
	if again {
		return
	}
	s := p.newScreen(num)
	s.CSV, s.Monitor = true, true
	p.csv = s
	for _, c := range cols {
		switch c {
		case "pid":
			s.HasTable = true
		case "fb":
			s.Sized = true
		}
	}
	s.HasGPUs = !s.HasTable
}

func (p *Parser) monitorRow(f []string) bool {
	g := GPU{Index: -1, Total: -1, Used: -1, Free: -1, Reserved: -1, Util: -1}
	x := Process{GPU: -1, PID: -1, Used: -1}
	date, clock := "", ""
	for i, c := range p.mon {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil || n < 0 {
			n = -1
			if f[i] != "-" && (c == "gpu" || c == "fb" || c == "pid") {
				return false
			}
		}
		switch c {
		case "Date":
			date = f[i]
		case "Time":
			clock = f[i]
		case "gpu":
			g.Index, x.GPU = n, n
		case "fb":
			g.Used, x.Used = n, n
		case "sm":
			g.Util = n
		case "pid":
			x.PID = n
		case "type":
			x.Type = f[i]
		case "command":
			x.Name = strings.Join(f[i:], " ")
		}
	}
	if len(date) == 8 {
		p.csv.Time = date[:4] + "/" + date[4:6] + "/" + date[6:] + " " + clock
	}
	if !p.csv.HasTable {
		p.sample(g)
		return true
	}
	if x.PID < 0 { // an idle device
		return true
	}
	for i := range p.csv.Processes { // repeated: the newest figures count
		o := &p.csv.Processes[i]
		if o.PID == x.PID && o.GPU == x.GPU {
			*o = x
			return true
		}
	}
	p.addProcess(p.csv, x)
	return true
}
