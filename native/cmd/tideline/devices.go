package main

import (
	"fmt"
	"slices"
	"strconv"

	"tideline/native/monitor"
	"tideline/shared/device"
)

type devicesCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// presetInfo is a preset as JSON. Bytes, bytes per second, operations per
// second.
type presetInfo struct {
	Name         string `json:"name"`
	Title        string `json:"title"`
	Kind         string `json:"kind"` // gpu, tpu
	Compute      string `json:"compute_capability"`
	Total        int64  `json:"total"`
	TotalFrom    string `json:"total_source"`
	Context      int64  `json:"context"`
	Reserve      int64  `json:"reserve"`
	Available    int64  `json:"default_limit"`
	FLOPS        int64  `json:"flops"`
	FLOPSFrom    string `json:"flops_source"`
	MemBandwidth int64  `json:"mem_bandwidth"`
	H2D          int64  `json:"h2d"`
	D2H          int64  `json:"d2h"`
}

// Run lists the virtual cards.
func (d *devicesCmd) Run(c *console) error {
	var list []presetInfo
	for _, p := range slices.Concat(device.Presets(), device.TPUs()) {
		card, err := device.NewMachine(nil).Card(p.Name, &p)
		if err != nil {
			return fmt.Errorf("make a %s: %w", p.Name, err)
		}
		card.Hold(p.Context.Value)
		free := card.Free()
		list = append(list, presetInfo{
			Name: p.Name, Title: p.Title, Kind: kindOf(&p), Compute: fmt.Sprintf("%d.%d", p.Major, p.Minor), Total: p.Total.Value, TotalFrom: p.Total.From.String(),
			Context: p.Context.Value, Reserve: card.Reserve(free), Available: device.DefaultLimit(free, card.Reserve(free)), FLOPS: p.FLOPS.Value, FLOPSFrom: p.FLOPS.From.String(),
			MemBandwidth: p.MemBandwidth.Value, H2D: p.H2D.Value, D2H: p.D2H.Value,
		})
	}
	if d.JSON {
		return printJSON(c, list)
	}
	d.own(c)
	c.say("Virtual cards, for devices: [{preset: NAME}] in a workload. Memory and\nallocation are exact; times are modelled from these figures. A program gets what\nthe driver's context and a reserve for libraries leave of the total, unless it\nsets memory_limit.\n\n")
	var t table
	t.row("preset", "card", "total", "context", "reserve", "for a program", "TFLOP/s", "GB/s")
	for _, p := range list {
		t.row(p.Name, p.Title, size(p.Total), size(p.Context), size(p.Reserve), size(p.Available), fmt.Sprintf("%.1f", float64(p.FLOPS)/1e12), fmt.Sprintf("%.0f", float64(p.MemBandwidth)/1e9))
	}
	t.print(c)
	return nil
}

func kindOf(p *device.Preset) string {
	if p.Type == "TPU" {
		return "tpu"
	}
	return "gpu"
}

// own lists the cards of this machine, with who holds their memory.
func (*devicesCmd) own(c *console) {
	m, err := monitor.Open()
	if err != nil {
		c.say("This machine: %v.\n\n", err)
		return
	}
	defer m.Close()
	list, err := m.Cards()
	if err != nil {
		c.say("This machine: %v.\n\n", err)
		return
	}
	c.say("Cards of this machine, driver %s:\n\n", m.Driver())
	var t table
	t.row("card", "bus id", "total", "used", "busy", "process")
	for i := range list {
		x := &list[i]
		busy := "?"
		if x.Utilisation != monitor.Unknown {
			busy = strconv.Itoa(x.Utilisation) + " %"
		}
		t.row(x.Name, x.PCI, size(x.Total), size(x.Used), busy, "")
		for _, p := range x.Processes {
			held := "?"
			if p.Bytes != monitor.Unknown {
				held = size(p.Bytes)
			}
			t.row("", "", "", held, "", strconv.Itoa(p.PID)+" "+p.Name)
		}
	}
	t.print(c)
	c.say("\n")
}
