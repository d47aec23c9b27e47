package draw

import (
	"math"
	"testing"

	"tideline/protocol/event"
)

// lab is a color in CIE L*a*b*, where distances are about those that eyes see.
func lab(c [3]float64) [3]float64 {
	x := (0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.9505
	y := 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	z := (0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.089
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	return [3]float64{116*f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))}
}

// eye is what an eye makes of linear light: the identity, or the loss of the
// red, green or blue cones (the matrices of Machado, Oliveira and Fernandes,
// 2009, at full severity).
type eye [9]float64

var eyes = map[string]eye{
	"all cones": {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"no red":    {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
	"no green":  {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
	"no blue":   {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900},
}

func (e eye) see(c Color) [3]float64 {
	var l, out [3]float64
	for i := range l {
		v := float64(c[i]) / 255
		if v <= 0.04045 {
			l[i] = v / 12.92
		} else {
			l[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	for i := range out {
		out[i] = max(0, e[3*i]*l[0]+e[3*i+1]*l[1]+e[3*i+2]*l[2])
	}
	return lab(out)
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

func TestEveryEyeCanTellTheColoursApart(t *testing.T) {
	for _, theme := range []*Theme{Light(), Dark()} {
		for name, e := range eyes {
			for i, c := range theme.Category {
				if d := distance(e.see(c), e.see(theme.Lane)); d < 17 {
					t.Errorf("%s, %s: %v is %.1f from the lane", theme.Name, name, event.Category(i), d)
				}
				if d := distance(e.see(c), e.see(theme.Hole)); d < 14 {
					t.Errorf("%s, %s: %v is %.1f from a hole", theme.Name, name, event.Category(i), d)
				}
				if d := distance(e.see(c), e.see(theme.Warning)); d < 14 {
					t.Errorf("%s, %s: %v is %.1f from the warning colour", theme.Name, name, event.Category(i), d)
				}
				for j := range i {
					least := 8.0
					if g := event.Category(i); g != g.Plain() && (j == 0 || event.Category(j) != event.Category(j).Plain()) {
						least = 15 // these lie side by side, and no order of a step tells them apart
					}
					if d := distance(e.see(c), e.see(theme.Category[j])); d < least {
						t.Errorf("%s, %s: %v is %.1f from %v", theme.Name, name, event.Category(i), d, event.Category(j))
					}
				}
			}
		}
	}
}

func TestTokensNameEveryColour(t *testing.T) {
	l, d := Light().Tokens(), Dark().Tokens()
	if len(l) != len(d) {
		t.Fatalf("light has %d tokens, dark %d", len(l), len(d))
	}
	seen := map[string]bool{}
	for i := range l {
		if l[i].Name != d[i].Name || seen[l[i].Name] || len(l[i].Color.Hex()) != 7 {
			t.Errorf("token %d: %v and %v", i, l[i], d[i])
		}
		seen[l[i].Name] = true
	}
	if !seen["category-activation-gradient"] || !seen["warning"] || Light().Warning.Hex() != "#d63a22" {
		t.Errorf("tokens are %v", l)
	}
}
