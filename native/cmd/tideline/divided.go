package main

import (
	"fmt"
	"slices"
	"strings"

	"tideline/protocol/api"
	"tideline/shared/shard"
	"tideline/shared/zoo"
)

// dividedOver are the numbers of devices that are told.
var dividedOver = [...]int64{2, 4, 8}

// divided is what published formulas say of a training step over several devices.
// Bytes. Nothing of it was run.
type divided struct {
	Note        string       `json:"note"`
	Devices     []int64      `json:"devices"`
	Params      int64        `json:"parameters"`
	Largest     int64        `json:"parameters_of_largest_layer"`
	State       []dividedRow `json:"state,omitempty"`
	Layers      int          `json:"layers,omitempty"`
	Tokens      int64        `json:"tokens,omitempty"` // of a step on one device
	Activations []dividedRow `json:"activations,omitempty"`
}

type dividedRow struct {
	How  string  `json:"how"`
	Each []int64 `json:"bytes_each"`                   // on each of Devices
	Host int64   `json:"host_bytes_at_most,omitempty"` // on the host of the last
}

const dividedNote = "estimates by published formulas, not run; Adam in mixed precision, activations in 16 bits; allocator and runtime not counted"

// divide works out the formulas for a workload that does not fit, of those parts
// that are a quarter of what it may have, or of its peak; nil where there is none.
func divide(w *api.Workload, o *fitted) *divided {
	of := func(names ...string) (sum int64) {
		for _, p := range o.Parts {
			if slices.Contains(names, p.Name) {
				sum += p.Bytes
			}
		}
		return sum
	}
	much := min(o.PeakInUse, o.Limit) / 4
	state, activations := of("parameter", "gradient", "optimizer state") >= much, of("activation") >= much
	if w.Train == nil || !state && !activations {
		return nil
	}
	model, err := zoo.Find(w.Model)
	if err != nil {
		return nil
	}
	image, sequence := largest(w.Image), largest(w.Sequence)
	p, err := zoo.Program(w.Model, zoo.Options{Batch: 1, Image: image, Sequence: sequence})
	if err != nil {
		return nil
	}
	var m shard.Model
	layers := map[string]int64{} // by the scope of their variables
	for i := range p.Variables {
		v := &p.Variables[i]
		if !v.Trained() {
			continue
		}
		n := v.Shape.Elements()
		layer := v.Name[:max(0, strings.LastIndexByte(v.Name, '/'))]
		m.Params += n
		layers[layer] += n
		m.Largest = max(m.Largest, layers[layer])
	}
	d := &divided{Note: dividedNote, Devices: dividedOver[:], Params: m.Params, Largest: m.Largest}
	if state {
		d.stages(m)
	}
	if b := model.Blocks; activations && b.Count > 0 {
		extent, of := sequence, model.Sequence
		if model.Kind == zoo.Images {
			extent, of = image, model.Image
		}
		if extent == 0 {
			extent = of.Default
		}
		d.layers(shard.Layer{
			Sequence: int64(b.Tokens(extent)), Batch: int64(max(1, largest(w.Batch)/max(1, w.Train.Microbatches))),
			Width: int64(b.Width), Heads: int64(b.Heads),
		}, b.Count)
	}
	if len(d.State)+len(d.Activations) == 0 {
		return nil
	}
	return d
}

func (d *divided) stages(m shard.Model) {
	for _, s := range shard.Stages() {
		row := dividedRow{How: s.String()}
		for _, n := range d.Devices {
			row.Each = append(row.Each, s.Device(m, shard.Nodes{Devices: n, PerNode: n}))
		}
		last := d.Devices[len(d.Devices)-1]
		row.Host = s.Host(m, shard.Nodes{Devices: last, PerNode: last})
		d.State = append(d.State, row)
	}
}

func (d *divided) layers(l shard.Layer, count int) {
	d.Layers, d.Tokens = count, l.Sequence*l.Batch
	for _, r := range shard.Recipes() {
		row := dividedRow{How: r.String()}
		for _, n := range d.Devices {
			row.Each = append(row.Each, l.Kept(r, n)*int64(count))
		}
		d.Activations = append(d.Activations, row)
	}
}

func largest(list []int) int {
	if len(list) == 0 {
		return 0
	}
	return slices.Max(list)
}

func (d *divided) print(c *console) {
	c.say("\n%s\n", wrap("Over several devices ("+d.Note+")", 78))
	var t table
	head := func(what string, more ...string) {
		cells := []string{"  " + what}
		for _, n := range d.Devices {
			cells = append(cells, fmt.Sprintf("each of %d", n))
		}
		t.row(append(cells, more...)...)
	}
	rows := func(list []dividedRow) {
		for _, r := range list {
			cells := []string{"    " + r.How}
			for _, n := range r.Each {
				cells = append(cells, size(n))
			}
			if r.Host > 0 {
				cells = append(cells, size(r.Host)+" at most")
			}
			t.row(cells...)
		}
	}
	if len(d.State) > 0 {
		head(fmt.Sprintf("state of %.1f million parameters", float64(d.Params)/1e6), fmt.Sprintf("host of %d", d.Devices[len(d.Devices)-1]))
		rows(d.State)
	}
	if d.Layers > 0 {
		head(fmt.Sprintf("kept by %d layers, %d tokens", d.Layers, d.Tokens))
		rows(d.Activations)
	}
	t.print(c)
}
