package timeline_test

import (
	"bytes"
	"fmt"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

func Example() {
	var file bytes.Buffer
	w := timeline.NewWriter(&file, timeline.Options{Block: block.Options{Deflate: true}})
	w.Emit(&event.Event{Kind: event.OpBegin, Op: w.Strings().ID("dense/MatMul"), ID: 1})
	w.Emit(&event.Event{Kind: event.OpEnd, Op: w.Strings().ID("dense/MatMul"), ID: 1, Time: 7000})
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}

	s, err := timeline.NewStream(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = s.Replay(event.SinkFunc(func(e *event.Event) {
		fmt.Println(e.Time, e.Kind, s.Strings().At(e.Op))
	}))
	fmt.Println(err, s.Damage(), s.Complete())
	// Output:
	// 0 op-begin dense/MatMul
	// 7000 op-end dense/MatMul
	// <nil> [] true
}
