package draw

import (
	"hash/fnv"
	"testing"

	"tideline/protocol/synthetic"
)

// The browser's picture is the report's picture: this test runs natively and
// in WebAssembly, and both must give this very number. When a picture changes
// on purpose, so does the number.
func TestPictureIsTheSameOnEveryHost(t *testing.T) {
	h := fnv.New64a()
	img := NewImage(300, 260)
	for _, theme := range []*Theme{Light(), Dark()} {
		for _, events := range []int{0, 4_000, 60_000} {
			tl := story(t)
			if events > 0 {
				tl = synthesize(t, synthetic.Options{Events: events, Seed: 2, Dynamic: true})
			}
			var r Renderer
			r.Frame(img, tl, viewOf(tl, 300, 260, theme))
			h.Write(img.Pix)
		}
	}
	const want = 0xb20b8253b74fc2bf
	if got := h.Sum64(); got != want {
		t.Errorf("the pictures' hash is %#x, want %#x", got, uint64(want))
	}
}
