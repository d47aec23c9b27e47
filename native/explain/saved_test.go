package explain

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"tideline/protocol/timeline"
	common "tideline/shared/analysis/reading"
	"tideline/shared/analysis/reading/saved"
)

// FuzzSavedReadings: a timeline may come from anybody, and so may what it keeps.
func FuzzSavedReadings(f *testing.F) {
	f.Add((&saved.Readings{Kind: "rmm-log", Cut: "x", List: []*common.Reading{{
		Kind: "rmm-log", Line: 3, Verdict: "balanced", Rows: []common.Row{{Label: "a", Value: "b"}},
		Held:   []common.Held{{Pool: "p", At: "peak", Bytes: -5, Blocks: 1, Holders: []common.Holder{{Name: "n", Bytes: 1 << 62, Blocks: 2}}, Unknown: 9}},
		Growth: []common.Growth{{Pool: "p", Verdict: common.Steady, Repeats: 4, Growing: []common.Grower{{Name: "g", PerRepeat: -1, Until: 2}}}, {Verdict: common.TooShort, LeftBlocks: 1}},
		Copies: &common.Copies{Busy: 1, LongestTime: -1}, Trials: []common.Trial{{Setting: "s", Spare: -7, Serves: true}, {}}, Peaks: []common.Trial{{Peak: -1}}, Least: -3, Short: 2,
	}}}).Append(nil))
	f.Add([]byte(`{"readings":[{"verdict":"\u00e9","flags":[1,null]},{"kind":"tf-bfc-oom","facts":{"a":[{"b":{}}]}}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var b bytes.Buffer
		w := timeline.NewWriter(&b, timeline.Options{})
		if err := errors.Join(w.WriteReadings(payload), w.Close()); err != nil {
			return // too long
		}
		for _, o := range []Options{{}, {JSON: true}, {HTML: true}, {Redact: true}} {
			if err := Explain("x.tideline", bytes.NewReader(b.Bytes()), io.Discard, o); err != nil {
				t.Fatal(err)
			}
		}
	})
}
