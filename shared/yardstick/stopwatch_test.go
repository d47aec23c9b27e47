package yardstick_test

import (
	"errors"
	"slices"
	"testing"

	"tideline/shared/yardstick"
)

// A run that is disturbed in one stretch still tells of the others.
func TestStopwatchKeepsTheShortestOfEachStretch(t *testing.T) {
	now := int64(1000)
	runs := [][]int64{{5, 90, 7}, {50, 6, 8}}
	run := 0
	task := yardstick.Task{Laps: func(lap func()) error {
		for _, d := range runs[run] {
			now += d
			lap()
		}
		run++
		return nil
	}}
	w := yardstick.NewStopwatch(func() int64 { return now })
	for i, want := range []int64{102, 64} {
		if got, err := w.Run(&task); err != nil || got != want {
			t.Errorf("run %d took %d, %v, want %d", i, got, err, want)
		}
	}
	if got := w.Quietest(); got != 5+6+7 {
		t.Errorf("the quietest is %d, want 18", got)
	}
	w.Keep([]int64{9, 2, 7})
	if got := w.Stretches(); !slices.Equal(got, []int64{5, 2, 7}) || w.Quietest() != 14 {
		t.Errorf("with those of another stopwatch: %d", got)
	}
}

func TestStopwatchTakesATaskThatIsNotCut(t *testing.T) {
	now, failing := int64(0), errors.New("failing")
	w := yardstick.NewStopwatch(func() int64 { return now })
	for _, d := range []int64{9, 4, 6} {
		if took, err := w.Run(&yardstick.Task{Run: func() error { now += d; return nil }}); err != nil || took != d {
			t.Errorf("took %d, %v, want %d", took, err, d)
		}
	}
	if got := w.Quietest(); got != 4 {
		t.Errorf("the quietest is %d, want 4", got)
	}
	if _, err := w.Run(&yardstick.Task{Run: func() error { return failing }}); !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
}
