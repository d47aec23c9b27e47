package explain

import (
	"fmt"

	"tideline/protocol/timeline"
	"tideline/shared/analysis/reading/saved"
)

// recall takes the readings that a timeline keeps of the input it was made of.
// They are told in the place of the failures among its events, which are the same
// seen with less.
func (rep *report) recall(s *timeline.Stream) {
	b, err := s.Readings()
	if err == nil && b != nil {
		rep.saved, err = saved.Parse(b)
	}
	if err != nil {
		rep.cut = damaged(1, err)
	}
	if rep.saved != nil {
		rep.readings = rep.saved.List
	}
}

// savedWords say whose the readings are; "" where they are of the input itself.
func (rep *report) savedWords() string {
	if rep.saved == nil {
		return ""
	}
	kind := rep.saved.Kind
	if kind == "" {
		kind = "of a kind that is not told"
	}
	words := fmt.Sprintf("Saved readings: this timeline was made of another file (%s), and keeps what that said.", kind)
	if rep.saved.Cut != "" {
		words += " Not all of that file was read: " + rep.saved.Cut + "."
	}
	if rep.saved.LeftOut > 0 {
		words += fmt.Sprintf(" %d more readings were left out.", rep.saved.LeftOut)
	}
	return words
}

func (rep *report) savedJSON(o *object) {
	s := rep.saved
	o.object("saved", func(o *object) {
		o.text("input_kind", s.Kind)
		if s.Cut != "" {
			o.text("cut", s.Cut)
		}
		if s.LeftOut > 0 {
			o.integer("left_out", s.LeftOut)
		}
	})
}

// shownFailures are those that are shown to people.
func (rep *report) shownFailures() []failure {
	if rep.saved != nil {
		return nil
	}
	return rep.failures
}
