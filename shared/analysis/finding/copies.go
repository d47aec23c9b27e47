package finding

import (
	"slices"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// From which part of the steps' time copies are worth a word, and from which
// they are serious, in hundredths of a percent.
const (
	copiesSome = 500
	copiesMuch = 2000
)

// moved is what one tensor costs in copies between host and device.
type moved struct {
	tensor       event.StringID
	up           bool // from the host to the device
	count        int64
	bytes, nanos int64
}

// HostCopies finds copies between host and accelerators that a placement
// forces in every step: bytes, time, and who is to blame. Batches on their way
// in, results read back and what a run swaps out on purpose are not among
// them.
func HostCopies(tl *store.Timeline) []Finding {
	all := steady(steps(tl))
	if len(all) == 0 {
		return nil
	}
	list, total := crossings(tl, all)
	if total.count == 0 {
		return nil
	}
	t0, t1 := window(all)
	host := hostOps(tl)
	share := permyri(total.nanos+host.nanos(tl, t0, t1), t1-t0)
	wire := permyri(total.nanos, t1-t0)
	n := int64(len(all))
	if share < copiesSome || total.bytes/n < 1<<16 {
		return nil
	}
	f := Finding{ID: Copies, Title: "Too many copies between host and device", Severity: Warning, Culprit: host.reason}
	if share >= copiesMuch {
		f.Severity = Serious
	}
	f.put("copied_bytes_per_step", total.bytes/n, Bytes)
	f.put("copies_per_step", total.count/n, Count)
	f.put("copy_ns_per_step", total.nanos/n, Nanos)
	f.put("copy_time_percent", wire, BasisPoints)
	f.put("host_ops", host.count, Count)
	f.put("host_op_ns_per_step", host.nanos(tl, t0, t1)/n, Nanos)
	f.put("copies_and_host_ops_percent", share, BasisPoints)
	f.say("Every step moves " + size(total.bytes/n) + " between host and device in " + plural(total.count/n, "copy") +
		", " + span(total.nanos/n) + " or " + percent(wire) + " of its time.")
	if f.Culprit == "" {
		f.Culprit = orUnnamed(tl.Text(list[0].tensor))
	}
	if host.count > 0 {
		f.say(plural(host.count, "op") + " on the CPU " + forcing(host.count) + " them (" + host.reason + "), such as " + host.name +
			"; the ops there take another " + span(host.nanos(tl, t0, t1)/n) + " of a step.")
	}
	down, up := named(tl, list, false), named(tl, list, true)
	if down != "" {
		f.say("To the host go the results of " + down + ".")
	}
	if up != "" {
		f.say("Back come those of " + up + ".")
	}
	for i := range list {
		if i == 8 {
			break
		}
		f.Holders = append(f.Holders, Holder{Name: orUnnamed(tl.Text(list[i].tensor)) + direction(list[i].up), Bytes: list[i].bytes / n, Blocks: (list[i].count + n - 1) / n})
	}
	if host.rule {
		f.say("Without that rule producer and consumer lie on one device and nothing of this is copied.")
		f.try("placement.rules", "none")
	}
	return []Finding{f}
}

func forcing(n int64) string {
	if n == 1 {
		return "forces"
	}
	return "force"
}

func direction(up bool) string {
	if up {
		return " (to the device)"
	}
	return " (to the host)"
}

// named lists the tensors of one direction with the most bytes.
func named(tl *store.Timeline, list []moved, up bool) string {
	var words []string
	more := 0
	for i := range list {
		if list[i].up != up || list[i].bytes < list[0].bytes/16 {
			continue
		}
		if len(words) == 3 {
			more++
			continue
		}
		words = append(words, orUnnamed(tl.Text(list[i].tensor)))
	}
	s := strings.Join(words, ", ")
	if more > 0 {
		s += " and " + plural(int64(more), "more op")
	}
	return s
}

// crossings sums the forced copies of the steps by tensor and direction, the
// most bytes first. An eager run's copy has the op that waits for it, so the op
// that made what is copied is known by the tensor alone.
func crossings(tl *store.Timeline, all []store.Span) (list []moved, total moved) {
	t0, t1 := window(all)
	at := map[uint64]int{}
	for _, tr := range tl.Tracks() {
		if tr.Kind != store.TransferTrack || isHost(tl, tr.Device) == isHost(tl, tr.Peer) {
			continue
		}
		for _, i := range tr.Overlapping(nil, t0, t1, 0) {
			sp := tr.Span(int(i))
			c := event.TransferCause(sp.Class)
			if sp.End == store.Alive || sp.Begin < t0 || c != event.CausePlacement && c != event.CauseHostArgument && c != event.CauseExplicit {
				continue
			}
			up := isHost(tl, tr.Device)
			tensor := sp.Tensor
			if tensor == 0 {
				tensor = sp.Op
			}
			key := uint64(tensor) << 1
			if up {
				key++
			}
			k, ok := at[key]
			if !ok {
				k = len(list)
				at[key] = k
				list = append(list, moved{tensor: tensor, up: up})
			}
			m := &list[k]
			m.count, m.bytes, m.nanos = m.count+1, m.bytes+sp.Value, m.nanos+sp.End-sp.Begin
			total.count, total.bytes, total.nanos = total.count+1, total.bytes+sp.Value, total.nanos+sp.End-sp.Begin
		}
	}
	sorted := make([]moved, 0, len(list))
	for _, i := range order(len(list), func(i int) int64 { return list[i].bytes }) {
		sorted = append(sorted, list[i])
	}
	return sorted, total
}

// hostPlaced is the ops that were put on the host, and the commonest reason.
type hostPlaced struct {
	count  int64
	name   string // of the first of them
	reason string
	rule   bool
	busy   int64
	summed bool
}

func hostOps(tl *store.Timeline) hostPlaced {
	var a hostPlaced
	var reasons []string
	var counts []int64
	for _, p := range tl.Places() {
		reason := tl.Text(p.Reason)
		if !isHost(tl, p.Device) || strings.HasPrefix(reason, "default") || strings.HasPrefix(reason, "with ") {
			continue
		}
		a.count++
		i := slices.Index(reasons, reason)
		if i < 0 {
			i = len(reasons)
			reasons, counts = append(reasons, reason), append(counts, 0)
		}
		counts[i]++
	}
	for i, r := range reasons {
		if a.reason == "" || counts[i] > counts[slices.Index(reasons, a.reason)] {
			a.reason = r
		}
	}
	a.rule = strings.HasPrefix(a.reason, "rule ")
	for _, p := range tl.Places() {
		if isHost(tl, p.Device) && tl.Text(p.Reason) == a.reason && a.reason != "" && tensorOp(tl.Text(p.Op)) {
			a.name = tl.Text(p.Op)
			break
		}
	}
	return a
}

// tensorOp is for names that end in an op's type, not a variable's.
func tensorOp(name string) bool {
	last := name[strings.LastIndexByte(name, '/')+1:]
	return last != "" && last[0] >= 'A' && last[0] <= 'Z'
}

// nanos is the time that ops ran on hosts while a device could have.
func (a *hostPlaced) nanos(tl *store.Timeline, t0, t1 int64) int64 {
	if a.count == 0 || a.summed {
		return a.busy
	}
	a.summed = true
	for _, tr := range tl.Tracks() {
		if tr.Kind == store.OpTrack && isHost(tl, tr.Device) {
			busy, _, _ := tr.Sum(t0, t1)
			a.busy += busy.Total()
		}
	}
	return a.busy
}
