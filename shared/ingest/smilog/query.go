package smilog

import (
	"strconv"
	"strings"
)

// full is the long form of a query ("nvidia-smi -q"): a name and a value on
// each line, in sections that are indented below their device.
type full struct {
	gpu     *GPU
	section string
	base    int  // blanks before the device's own line
	deep    bool // the section belongs to an instance within the device
	process *Process
}

// fullLine reads a line of it.
func (p *Parser) fullLine(num int, s string) bool {
	t := strings.TrimSpace(s)
	if strings.Contains(t, "NVSMI LOG") && strings.HasPrefix(t, "==") {
		p.full = &full{}
		p.csv = p.newScreen(num)
		p.csv.CSV = true
		return true
	}
	if p.full == nil || t == "" {
		return false
	}
	indent := len(s) - len(strings.TrimLeft(s, " \t"))
	key, value, found := strings.Cut(t, " : ")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case strings.Contains(t, "|"), len(t) > 256:
		p.endFull()
		return false
	case found:
		p.fullValue(key, value)
	case strings.HasPrefix(t, "GPU ") && strings.Count(t, ":") >= 2:
		p.endProcess()
		g := p.csv.gpu(int64(len(p.csv.GPUs)), "", "")
		*p.full = full{gpu: g, base: indent}
		if g != nil {
			g.Bus = strings.TrimPrefix(t, "GPU ")
		}
	case indent == 0 || strings.HasSuffix(t, "."):
		p.endFull() // somebody else's words
		return false
	default:
		p.full.section = t
		p.full.deep = indent-p.full.base > 4
	}
	return true
}

func (p *Parser) fullValue(key, value string) {
	f, s := p.full, p.csv
	switch g := f.gpu; {
	case g == nil:
		put(key, value, words{"Driver Version", &s.Driver}, words{"CUDA Version", &s.CUDA}, words{"Timestamp", &s.Time})
	case key == "Processes":
		s.HasTable, f.section = true, key
	case key == "Process ID":
		p.endProcess()
		s.HasTable = true
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			f.process = &Process{GPU: g.Index, PID: n, Used: -1}
		}
	case f.process != nil:
		x := f.process
		if put(key, value, words{"Type", &x.Type}, words{"Name", &x.Name}); key == "Used GPU Memory" {
			x.Used = mib(value)
		}
	case f.section == "FB Memory Usage" && !f.deep:
		for _, to := range []struct {
			key string
			at  *int64
		}{{"Total", &g.Total}, {"Reserved", &g.Reserved}, {"Used", &g.Used}, {"Free", &g.Free}} {
			if key == to.key {
				*to.at = mib(value)
			}
		}
		g.First, g.Peak = g.Used, g.Used
	case f.section == "Utilization" && !f.deep && key == "Gpu":
		g.Util = mib(strings.TrimSpace(strings.TrimSuffix(value, "%")))
	default:
		put(key, value, words{"Product Name", &g.Name}, words{"GPU UUID", &g.UUID})
	}
}

// words are where the value of a key goes.
type words struct {
	key string
	at  *string
}

func put(key, value string, to ...words) {
	for _, w := range to {
		if w.key == key {
			*w.at = value
		}
	}
}

// endProcess files the process being told.
func (p *Parser) endProcess() {
	if f := p.full; f != nil && f.process != nil {
		p.addProcess(p.csv, *f.process)
		f.process = nil
	}
}

func (p *Parser) endFull() {
	p.endProcess()
	p.full = nil
}
