package ingest

import (
	"bytes"
	"slices"
	"testing"

	"tideline/shared/golden"
)

// TestRowsNameTheCulprit: what a message blames, and what a verdict rests on,
// is told to people, too, not only to programs.
func TestRowsNameTheCulprit(t *testing.T) {
	for id, want := range map[string][]string{
		"09-jax-2024-dot-needs-2-gib":     {"usage bar: 7 of 100 cells free, at most 5 side by side", "more buffers: 3 smaller ones", "allocator: GPU_0_bfc"},
		"11-jax-2025-two-devices-payload": {"allocator: GPU_1_bfc", "usage bar: 1 of 100 cells free, at most 1 side by side"},
		"12-xla-tpu-2019-padding-32x": {
			"allocation 1: 32.00 GiB s32[8388608,8,4]", "  without padding: 1.00 GiB, 32 times as large with it",
			"  of op: slicewise_79/cic_update/FloorMod",
		},
		"14-ort-2024-arena-limit-reached": {"node: TfIdfVectorizer"},
		"15-ort-2024-impossible-size":     {"node: /patch_embed/stages/stages.0/blocks/blocks.0/mlp/fc1/Conv", "op: Conv"},
	} {
		inputs, _ := golden.Case(t, id)
		text, err := ReadText(id, bytes.NewReader(inputs["input.log"]))
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, row := range text.All()[0].Rows {
			rows = append(rows, row.Label+": "+row.Value)
		}
		for _, row := range want {
			if !slices.Contains(rows, row) {
				t.Errorf("%s: no %q in %q", id, row, rows)
			}
		}
	}
}
