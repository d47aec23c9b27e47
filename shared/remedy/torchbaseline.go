package remedy

import (
	"fmt"
	"strconv"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

const buildsUp = "what was live before the trace begins is asked for first, segment by segment in the order of addresses"

// failure tries what would have served the last refused request.
func (t *caching) failure() {
	s, ok := t.baseline()
	if t.stopped {
		t.out.say("There are too many requests to replay them here.")
		return
	}
	t.out.say(t.restored())
	if t.limited {
		t.out.say("The device had room when the request was refused, so a limit refused it; it is taken to be what was reserved at the most.")
	}
	t.short()
	if !ok {
		t.out.say("Replayed under the recorded settings, the requests do not fail as recorded: what broke the memory up is not in the trace, so no setting can be said to serve.")
		return
	}
	if t.how == inPlace {
		t.out.say("Replayed from that state under the recorded settings, the request fails as recorded; from an empty device it does not.")
	} else {
		t.out.say("Replayed from an empty device under the recorded settings, the request fails as recorded.")
	}
	t.least(s.sequence)
	var easier played
	if t.how == withHoles && t.live > 0 {
		easier = played{sequence: t.sequence(liveAlone), assumes: assumed[liveAlone]}
		easier.cut()
	}
	if t.live > 0 && t.how != inPlace {
		for _, how := range []way{backwards, liveAlone} {
			doubt := t.sequence(how)
			doubt.cut()
			s.doubts = append(s.doubts, doubt)
		}
	}
	t.try(&t.out, s, easier, t.candidates(), t.capacity)
}

var assumed = [...]string{
	withHoles: buildsUp + ", with the idle parts between, which are then given back",
	liveAlone: buildsUp,
	inPlace:   "the setting holds from where the trace begins; what was held then stays where it was",
}

// baseline finds a way to come to the state under which the recorded settings
// fail as recorded.
func (t *caching) baseline() (s played, ok bool) {
	ways := []way{withHoles, liveAlone, inPlace}
	if t.live == 0 {
		ways = ways[1:2]
	}
	for _, t.how = range ways {
		s = played{sequence: t.sequence(t.how)}
		s.cut()
		m, err := t.machine(&t.in.Settings, t.capacity)
		if err != nil {
			continue
		}
		if r := t.play(s.sequence, m, t.capacity); r.asRecorded(s.sequence) {
			if t.live > 0 {
				s.assumes = assumed[t.how]
			}
			return s, true
		}
	}
	return s, false
}

// least finds the largest request that could have been served in place of the
// refused one.
func (t *caching) least(s *sequence) {
	m, err := t.machine(&t.in.Settings, t.capacity)
	if err != nil {
		return
	}
	if r := t.play(s, m, t.capacity); !r.asRecorded(s) {
		return
	}
	// The failure has given everything idle back, and so does every try: the
	// state stays as it is, and one replay does for all sizes.
	c := *s.last()
	n, _ := largest(c.bytes, torch.Granule, func(bytes int64) (bool, bool) {
		c.bytes = bytes
		addr, ok := m.serve(s, &c)
		if ok && m.Free(addr) == nil {
			m.giveBack()
		}
		return ok, true
	})
	t.out.least(s.last().bytes, n)
}

// short is what even a perfect placement would have lacked.
func (t *caching) short() {
	live := int64(0)
	s := t.sequence(liveAlone)
	s.cut()
	size := make([]int64, s.slots)
	for i := range s.calls {
		switch x := &s.calls[i]; x.what {
		case ask:
			size[x.slot] = (x.bytes + torch.Granule - 1) &^ (torch.Granule - 1)
			live += size[x.slot]
		case drop:
			live -= size[x.slot]
		default:
		}
	}
	t.out.Short = max(0, live+s.last().bytes-t.capacity)
}

// restored plays the trace from the recorded state, addresses and all, and says
// how much of what the allocator did came out the same.
func (t *caching) restored() string {
	if t.stopped || int64(t.end) > t.left {
		return ""
	}
	t.left -= int64(t.end)
	h := &follower{want: t.in.Trace[:t.end]}
	a, err := torch.New(torch.NewDevice(alloc.NewCard(t.capacity), 0), torch.Options{Settings: t.in.Settings, Tracer: h})
	if err != nil {
		return ""
	}
	if err := a.Restore(t.begin); err != nil {
		return ""
	}
	h.play(a, t)
	if h.odd > 0 || h.next < t.end {
		return fmt.Sprintf("From the recorded state on, %d of the %d recorded actions came out the same, then another.", h.next, t.end)
	}
	return fmt.Sprintf("From the recorded state on, all %s recorded actions came out the same, the refused requests too.", thousands(t.end))
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
