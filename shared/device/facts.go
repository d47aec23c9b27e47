package device

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// Facts are the fields of a DeviceFacts event. Every figure of a preset comes
// with where it is from, under its key and ".source".
func (l *Logical) Facts() event.Fields {
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	f := event.Fields{
		{Key: "name", Value: "/device:" + l.Name.Type + ":" + strconv.Itoa(l.Name.ID)},
		{Key: "full_name", Value: l.Name.String()},
		{Key: "kind", Value: strings.ToLower(l.Name.Type)},
	}
	if l.IsHost() {
		return append(f, event.Field{Key: "title", Value: "Host"})
	}
	p := l.Card.Preset
	f = append(
		f,
		event.Field{Key: "title", Value: p.Title},
		event.Field{Key: "preset", Value: p.Name},
		event.Field{Key: "card", Value: l.Card.Name},
		event.Field{Key: "compute_capability", Value: strconv.Itoa(p.Major) + "." + strconv.Itoa(p.Minor)},
		event.Field{Key: "free", Value: num(l.FreeNow)},
		event.Field{Key: "limit", Value: num(l.Limit)},
		event.Field{Key: "held", Value: num(l.Held)},
		event.Field{Key: "growth", Value: strconv.FormatBool(l.Growth)},
		event.Field{Key: "reserve", Value: num(l.Card.Reserve(l.FreeNow))},
	)
	for _, x := range []struct {
		key string
		fig Figure
	}{
		{"total", p.Total},
		{"context", p.Context},
		{"flops", p.FLOPS},
		{"mem_bandwidth", p.MemBandwidth},
		{"h2d", p.H2D},
		{"d2h", p.D2H},
		{"peer", p.Peer},
	} {
		f = append(f, event.Field{Key: x.key, Value: num(x.fig.Value)}, event.Field{Key: x.key + ".source", Value: x.fig.From.String()})
	}
	return f
}
