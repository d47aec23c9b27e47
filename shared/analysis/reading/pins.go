package reading

import "tideline/shared/analysis/pins"

// MaxPins bounds the pins that a report lists.
const MaxPins = 16

// Pins are regions that little keeps, as the report for programs has them; null
// for none.
func Pins(list []pins.Pin) Value {
	if len(list) == 0 {
		return Null()
	}
	out := make([]Value, 0, MaxPins)
	for i := range list[:min(len(list), MaxPins)] {
		p := &list[i]
		var f Facts
		f.Set("address", Uint(p.Address))
		f.Int("bytes", p.Size)
		f.Int("idle_bytes", p.Idle)
		f.Int("live_bytes", p.Live)
		f.Int("blocks", int64(p.Blocks))
		f.Text("holder", p.Holder)
		out = append(out, Object(f))
	}
	return List(out...)
}
