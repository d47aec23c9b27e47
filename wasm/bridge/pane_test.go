package bridge

import (
	"testing"

	"tideline/protocol/event"
)

// TestAStripKeepsTheHoleBehindSmallChunks: a chunk under a unit takes one unit and
// no more, whatever lies behind it.
func TestAStripKeepsTheHoleBehindSmallChunks(t *testing.T) {
	const mib = 1 << 20
	used := func(n int64) event.Chunk { return event.Chunk{Size: n, InUse: true} }
	free := func(n int64) event.Chunk { return event.Chunk{Size: n} }
	for _, c := range []struct {
		chunks []event.Chunk
		want   string
	}{
		{
			[]event.Chunk{used(1280), used(1 << 18), free(300 * mib), used(200 * mib), free(499*mib - 1280 - 1<<18), used(mib)},
			"[[0,1,\"used\"],[1,299,\"hole\"],[300,200,\"used\"],[500,499,\"hole largest\"],[999,1,\"used\"]]",
		},
		{
			[]event.Chunk{used(600 * mib), free(1024), used(400*mib - 2048), free(1024)},
			"[[0,600,\"used\"],[600,1,\"hole largest\"],[601,399,\"used\"]]",
		},
	} {
		r := event.Region{Chunks: c.chunks}
		for i := range c.chunks {
			r.Size += c.chunks[i].Size
		}
		a := new(answer)
		a.open().strip(event.ChunkMap{r})
		a.close()
		got := string(a.b)
		if at := len(got) - 1 - len(c.want); at < 0 || got[at:len(got)-1] != c.want {
			t.Errorf("drawn as %s, want %s", got, c.want)
		}
	}
}
