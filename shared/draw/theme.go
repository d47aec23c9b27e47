package draw

import (
	"strings"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// Theme is the colours of a picture. The page's styles use the same values:
// see Tokens.
//
// The categories keep to blues, greens, golds and violets of clearly different
// lightness, so that they stay apart for colour-blind eyes, and so that the
// one warm red, Warning, is left for what is wrong.
type Theme struct {
	Name       string
	Background Color // of the page
	Lane       Color // of a lane
	Grid       Color // hairlines
	Line       Color // outlines and marks
	Reserved   Color // line of reserved bytes
	Pool       Color // area of reserved bytes that are not in use
	Limit      Color // limit line
	Ghost      Color // base run
	Hole       Color // free addresses of a region
	Outside    Color // addresses of no region
	Warning    Color // stalls and out of memory, and nothing else
	Peak       Color
	Match      Color // what passes a filter and has no category
	Category   [event.NumCategories]Color
	Phase      [store.NumClasses]Color // ops: forward, backward, update, input, copy
	Cause      [store.NumClasses]Color // transfers, by event.TransferCause
	Stage      Color                   // input pipeline at work
	Queue      Color                   // buffered elements
}

// Color is red, green, blue, alpha.
type Color [4]byte

func rgb(hex uint32) Color { return Color{byte(hex >> 16), byte(hex >> 8), byte(hex), 255} }

// Light is the theme for bright surroundings.
func Light() *Theme {
	t := &Theme{
		Name:       "light",
		Background: rgb(0xf3f2ee), Lane: rgb(0xfcfbf9), Grid: rgb(0xe9e7e1), Line: rgb(0x2b2f36),
		Reserved: rgb(0x8d949e), Pool: rgb(0xf1f2f4), Limit: rgb(0x4a505a), Ghost: rgb(0x14171c),
		Hole: rgb(0xe6e8ec), Outside: rgb(0xf7f6f3), Warning: rgb(0xd63a22), Peak: rgb(0x2b2f36), Match: rgb(0x0b6a70),
		Stage: rgb(0x5f9ea6), Queue: rgb(0xa9c3d6),
	}
	t.Category = [event.NumCategories]Color{
		event.Unknown:            rgb(0xa3a9b1),
		event.Parameter:          rgb(0x33568f),
		event.OptimizerState:     rgb(0x869bd2),
		event.Constant:           rgb(0x4f5a6c),
		event.Input:              rgb(0x2397a0),
		event.Activation:         rgb(0x7cc29b),
		event.Gradient:           rgb(0xcda02a),
		event.ActivationGradient: rgb(0xf0dfa0),
		event.Temporary:          rgb(0x9a6cae),
		event.Output:             rgb(0x4d3a6b),
		event.Group1:             rgb(0x9261e7),
		event.Group2:             rgb(0x39b479),
		event.Group3:             rgb(0x94278b),
		event.Group4:             rgb(0xa3d667),
		event.Group5:             rgb(0x2f6351),
		event.Group6:             rgb(0xefbdf8),
	}
	t.derive()
	return t
}

// Dark is the theme for dim surroundings.
func Dark() *Theme {
	t := &Theme{
		Name:       "dark",
		Background: rgb(0x0f1216), Lane: rgb(0x161a20), Grid: rgb(0x222831), Line: rgb(0xdfe3e8),
		Reserved: rgb(0x77808c), Pool: rgb(0x1c2128), Limit: rgb(0xb3bac4), Ghost: rgb(0xf2f4f7),
		Hole: rgb(0x262c35), Outside: rgb(0x13171c), Warning: rgb(0xf44a24), Peak: rgb(0xf2f4f7), Match: rgb(0x5cc3bf),
		Stage: rgb(0x4f8f97), Queue: rgb(0x3f5a70),
	}
	t.Category = [event.NumCategories]Color{
		event.Unknown:            rgb(0x757c87),
		event.Parameter:          rgb(0x4a76bd),
		event.OptimizerState:     rgb(0x9fb1e6),
		event.Constant:           rgb(0x4c586d),
		event.Input:              rgb(0x33adb0),
		event.Activation:         rgb(0x90d6ae),
		event.Gradient:           rgb(0xdcb94e),
		event.ActivationGradient: rgb(0xf4e8ba),
		event.Temporary:          rgb(0xa678bb),
		event.Output:             rgb(0x6f5b98),
		event.Group1:             rgb(0x947ffb),
		event.Group2:             rgb(0x279b1f),
		event.Group3:             rgb(0xa52a8c),
		event.Group4:             rgb(0xb9ea9b),
		event.Group5:             rgb(0x926f65),
		event.Group6:             rgb(0xf4c1ee),
	}
	t.derive()
	return t
}

// derive gives phases and causes the colours of the categories they feed, so
// that one colour means one thing all over the screen.
func (t *Theme) derive() {
	c := &t.Category
	t.Phase = [store.NumClasses]Color{
		event.OpForward: c[event.Activation], event.OpBackward: c[event.Gradient],
		event.OpUpdate: c[event.OptimizerState], event.OpInput: c[event.Input], event.OpCopy: c[event.Constant],
	}
	for i := int(event.OpCopy) + 1; i < store.NumClasses; i++ {
		t.Phase[i] = c[event.Unknown]
	}
	t.Cause = [store.NumClasses]Color{
		event.CauseUnknown: c[event.Unknown], event.CauseExplicit: c[event.Temporary],
		event.CausePlacement: c[event.Gradient], event.CauseInput: c[event.Input], event.CauseFetch: c[event.Output],
		event.CauseHostArgument: c[event.Constant], event.CauseSwap: c[event.ActivationGradient],
		event.CauseInitial: c[event.Parameter],
	}
}

// Token is a colour by the name under which styles know it.
type Token struct {
	Name  string // "category-parameter", "warning"
	Color Color
}

// Tokens lists the theme's colours by name, in a fixed order.
func (t *Theme) Tokens() []Token {
	out := []Token{
		{"background", t.Background},
		{"lane", t.Lane},
		{"grid", t.Grid},
		{"line", t.Line},
		{"reserved", t.Reserved},
		{"pool", t.Pool},
		{"limit", t.Limit},
		{"ghost", t.Ghost},
		{"hole", t.Hole},
		{"outside", t.Outside},
		{"warning", t.Warning},
		{"peak", t.Peak},
		{"match", t.Match},
		{"stage", t.Stage},
		{"queue", t.Queue},
	}
	for i, c := range t.Category {
		out = append(out, Token{"category-" + dashed(event.Category(i).String()), c})
	}
	for i, name := range phaseNames {
		out = append(out, Token{"phase-" + name, t.Phase[i]})
	}
	for i, c := range t.Cause {
		out = append(out, Token{"cause-" + dashed(event.TransferCause(i).String()), c})
	}
	return out
}

var phaseNames = [...]string{
	event.OpForward: "forward", event.OpBackward: "backward", event.OpUpdate: "update",
	event.OpInput: "input", event.OpCopy: "copy",
}

// PhaseName is the word for the class of an op's span.
func PhaseName(class uint8) string {
	if int(class) < len(phaseNames) {
		return phaseNames[class]
	}
	return "other"
}

func dashed(s string) string { return strings.ReplaceAll(s, " ", "-") }

// Hex is the colour as #rrggbb.
func (c Color) Hex() string {
	const digits = "0123456789abcdef"
	b := []byte{'#'}
	for _, v := range c[:3] {
		b = append(b, digits[v>>4], digits[v&15])
	}
	return string(b)
}
