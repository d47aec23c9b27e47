package remedy

import (
	"fmt"
	"strconv"

	"tideline/shared/analysis/reading"
)

// played is a sequence with what it takes for granted.
type played struct {
	*sequence
	assumes string
	// doubts are other ways in which the state may have come about: a setting
	// serves only if it does so in all of them.
	doubts []*sequence
}

// try replays every candidate. One that cannot hold what is built up before the
// recorded requests gets a second chance with the easier sequence, if there is
// one: what fails even that, fails; of what does not, nothing is known.
func (w *work) try(out *Outcome, s, easier played, list []candidate, capacity int64) {
	left, open := 0, 0
	for i := range list {
		c := &list[i]
		room := capacity
		if c.capacity > 0 {
			room = c.capacity
		}
		r, possible := w.attempt(c, s.sequence, room)
		assumes := s.assumes
		if r.broke && r.at < s.begins && easier.sequence != nil {
			if r, possible = w.attempt(c, easier.sequence, room); r.serves(easier.sequence) {
				open++
				continue
			}
			assumes = easier.assumes
		}
		if !possible {
			continue // it cannot be had under these terms
		}
		if !r.played {
			left = len(list) - i
			break
		}
		serves := r.serves(s.sequence)
		for _, doubt := range s.doubts {
			if serves {
				again, _ := w.attempt(c, doubt, room)
				serves = again.serves(doubt)
				r.spare = min(r.spare, again.spare)
			}
		}
		x := reading.Trial{
			Setting: c.setting, Allocator: c.kind, Own: c.own, Serves: serves, Spare: -1, Peak: r.peak,
			Assumes: joined(assumes, c.assumes),
		}
		if x.Serves {
			x.Spare = r.spare
		}
		out.Trials = append(out.Trials, x)
	}
	if open > 0 {
		out.say(fmt.Sprintf("Of %s nothing is known: what was live fits, placed anew without holes, but not the state as it was.", counted(open, "other setting or allocator", "other settings and allocators")))
	}
	if left > 0 {
		out.say(fmt.Sprintf("There are too many requests to try everything: %s left out.", counted(left, "setting was", "settings were")))
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func (w *work) attempt(c *candidate, s *sequence, room int64) (r result, possible bool) {
	m, err := c.make(room)
	if err != nil {
		return r, false
	}
	return w.play(s, m, room), true
}
