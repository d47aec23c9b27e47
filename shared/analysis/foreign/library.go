package foreign

import (
	"fmt"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/driverlog"
	"tideline/shared/ingest/liblog"
)

// library is a class of messages in words.
type library struct {
	name string // for headings
	says string // what the message means, a sentence; "" where its status tells
}

var libraries = map[liblog.Class]library{
	liblog.Copy:      {"a copy to the GPU", "A copy to the GPU found no memory for the tensor that it was to make there: the device's pool had no room for it."},
	liblog.DNN:       {"cuDNN", ""},
	liblog.BLAS:      {"cuBLAS", ""},
	liblog.Solver:    {"cuSOLVER", ""},
	liblog.Sparse:    {"cuSPARSE", ""},
	liblog.FFT:       {"cuFFT", ""},
	liblog.Algorithm: {"cuDNN", "TensorFlow could try no algorithm of cuDNN for a convolution, mostly because cuDNN had no handle or no workspace."},
	liblog.Launch:    {"cuBLAS", "A product was not run: cuBLAS had no handle, or refused the call."},
	liblog.RNN:       {"cuDNN", "A call of cuDNN's recurrent network failed; it needs a workspace, and refuses lengths and shapes of 0."},
	liblog.Workspace: {"a workspace", "A library's workspace could not be had."},
	liblog.Driver:    {"the driver", "The driver had no memory to give."},
}

// meaning is what a message means, as a sentence.
func meaning(m *liblog.Message) string {
	l := libraries[m.Class]
	switch {
	case l.says != "":
		return l.says
	case strings.HasSuffix(m.Status, "ALLOC_FAILED"):
		return l.name + " asked the driver for memory beside the framework's pool, and was refused."
	case strings.HasSuffix(m.Status, "NOT_INITIALIZED"), strings.HasSuffix(m.Status, "INTERNAL_ERROR"):
		return l.name + " failed inside, mostly when it made its handle, which takes memory of the device beside the framework's pool."
	case strings.HasSuffix(m.Status, "EXECUTION_FAILED"):
		return "A kernel of " + l.name + " failed while it ran."
	default:
		return l.name + " does not fit the device or the program."
	}
}

// faceOf says whether a message says no more than an allocator's dump does.
func faceOf(m *liblog.Message) bool {
	switch m.Class {
	case liblog.Copy, liblog.Driver, liblog.Workspace, liblog.RNN, liblog.Launch:
		return m.Status == ""
	default:
		return false
	}
}

// Library judges what libraries said when they failed. It is nil where they said
// nothing, or nothing that a report of memory in the same text does not say
// better. other says that there is such a report.
func Library(rep *liblog.Report, card *driverlog.Report, log *bfclog.Log, other bool) *reading.Reading {
	var list []liblog.Message
	for i := range rep.Messages {
		m := &rep.Messages[i]
		if other && faceOf(m) || m.Class == liblog.Driver && !card.Empty() {
			continue
		}
		list = append(list, *m)
	}
	if len(list) == 0 {
		return nil
	}
	l := told{list: list, rep: rep}
	l.room(card, log)
	return l.reading()
}

// told is what a text tells of a failed library.
type told struct {
	list []liblog.Message
	rep  *liblog.Report

	start *driverlog.Start // of the only device; nil where none is told
	dump  *bfclog.Dump     // of its allocator; nil for none
	pool  int64            // what the allocator has or may have; -1 when not known
	held  bool             // it has it
	left  int64            // of the device, beside the pool; -1 when not known
	wants *bfclog.Notice   // a request before that failed and was no error
}

// room works out what the pool left of the device.
func (l *told) room(card *driverlog.Report, log *bfclog.Log) {
	l.pool, l.left = -1, -1
	line := l.list[0].Line
	if n := len(card.Starts); n > 0 && card.Started(card.Starts[n-1].Device, 1<<62) != nil {
		one := true
		for i := range card.Starts {
			one = one && card.Starts[i].Device == card.Starts[0].Device
		}
		if one {
			l.start = card.Started(card.Starts[0].Device, line)
		}
	}
	if log != nil {
		for _, d := range log.Dumps {
			if _, ok := deviceOf(d.Allocator); ok && !d.HostPinned() && (d.HasStats || d.Pool.Known) && (l.dump == nil || d.Line < line) {
				l.dump = d
			}
		}
		for i := range log.Notices {
			if n := &log.Notices[i]; n.NotFailure && n.Line < line {
				l.wants = n
			}
		}
	}
	switch {
	case l.dump != nil && l.dump.Pool.Known:
		l.pool, l.held = l.dump.Pool.N, true
	case l.dump != nil && l.dump.Limit.Known:
		l.pool = l.dump.Limit.N
	case l.start != nil && l.start.Promised.Known:
		l.pool = l.start.Promised.N
	}
	if l.pool < 0 || l.start == nil {
		return
	}
	if l.start.Free.Known {
		l.left = max(0, l.start.Free.N-l.pool)
	} else if l.start.Total.Known {
		l.left = max(0, l.start.Total.N-l.pool)
	}
}

// memory says whether one of the messages is certainly about memory.
func (l *told) memory() bool {
	for i := range l.list {
		if l.list[i].Memory() {
			return true
		}
	}
	return false
}

func (l *told) mismatch() bool {
	for i := range l.list {
		if l.list[i].Mismatch() {
			return true
		}
	}
	return l.rep.Loaded != "" && l.rep.Loaded != l.rep.Compiled
}

// outside says whether a library asked the driver itself, beside the pool.
func (l *told) outside() bool {
	for i := range l.list {
		if m := &l.list[i]; m.Class != liblog.Copy && m.Class != liblog.Driver && m.Memory() {
			return true
		}
	}
	return false
}

func (l *told) reading() *reading.Reading {
	first := &l.list[0]
	r := &reading.Reading{Kind: "library-message", Line: first.Line, Name: libraries[first.Class].name}
	l.facts(&r.Facts)
	l.rows(r)
	l.judge(r)
	if l.wants != nil {
		r.Why += fmt.Sprintf(" Before it a request of %s had failed that its caller could do without: the pool was short already.", bfclog.Spaced(l.wants.Requested.Text))
	}
	return r
}

func (l *told) facts(f *reading.Facts) {
	list := make([]reading.Value, len(l.list))
	for i := range l.list {
		m, o := &l.list[i], reading.Facts{}
		o.Text("message", string(m.Class))
		o.Text("status", m.Status)
		o.Int("line", int64(m.Line))
		o.Int("count", int64(m.Count))
		o.Text("node", m.Node)
		o.IntIf("requested_bytes", m.Bytes, m.Bytes >= 0)
		o.Bool("is_memory", m.Memory())
		list[i] = reading.Object(o)
	}
	f.Set("messages", reading.List(list...))
	f.Text("library_loaded", l.rep.Loaded)
	f.Text("library_compiled", l.rep.Compiled)
	s := l.start
	if s == nil {
		s = new(driverlog.Start)
	}
	f.Text("card", s.Name)
	f.Text("start_total_text", s.Total.Text)
	f.Text("start_free_text", s.Free.Text)
	f.IntIf("promised_bytes", s.Promised.N, s.Promised.Known)
	f.IntIf("pool_bytes", l.pool, l.pool >= 0)
	f.IntIf("left_bytes", l.left, l.left >= 0)
	if l.dump != nil {
		f.Int("dump_line", int64(l.dump.Line))
	} else {
		f.Null("dump_line")
	}
}

// mostMessages is how many a table names.
const mostMessages = 6

func (l *told) rows(r *reading.Reading) {
	for i := range l.list {
		m := &l.list[i]
		if i == mostMessages {
			break
		}
		words := m.Status
		if words == "" {
			words = wordsOf[m.Class]
		}
		if m.Count > 1 {
			words += fmt.Sprintf(", %d times", m.Count)
		}
		if m.Node != "" {
			words += ", at " + m.Node
		}
		r.Row(libraries[m.Class].name, words)
	}
	if l.start != nil {
		if l.start.Total.Known {
			r.Row("device", bfclog.Spaced(l.start.Total.Text))
		}
		if l.start.Free.Known {
			r.Row("free at the start", bfclog.Spaced(l.start.Free.Text))
		}
	}
	if l.pool >= 0 {
		r.Row("the pool", event.FormatBytes(l.pool))
	}
	if l.left >= 0 {
		r.Row("left beside it", event.FormatBytes(l.left))
	}
}

var wordsOf = map[liblog.Class]string{
	liblog.Copy: "the target of a copy has no memory", liblog.Algorithm: "no algorithm for a convolution", liblog.Launch: "a product was not run",
	liblog.RNN: "a recurrent network was not run", liblog.Workspace: "no memory for a workspace", liblog.Driver: "out of memory",
}

// littleLeft is so little beside a pool that a library's handle and workspace may
// not fit: bytes.
const littleLeft = int64(512) << 20

// muchLeft is so much that the pool cannot be to blame: bytes.
const muchLeft = int64(2) << 30

func (l *told) judge(r *reading.Reading) {
	r.Why = meaning(&l.list[0])
	lib := strings.TrimPrefix(libraries[l.list[0].Class].name, "a ")
	share := ""
	if l.pool >= 0 && l.start != nil && l.start.Total.Known {
		verb := "may take"
		if l.held {
			verb = "held"
		}
		share = fmt.Sprintf(" The pool of the framework %s %s of the device's %s", verb, event.FormatBytes(l.pool), bfclog.Spaced(l.start.Total.Text))
		if l.left >= 0 {
			share += fmt.Sprintf(", so what others ask the driver for had %s at most", event.FormatBytes(l.left))
		}
		share += "."
		if l.left >= 0 && !l.start.Free.Known {
			share += " The driver's context and other programs take of that too."
		}
	} else if l.pool >= 0 {
		share = fmt.Sprintf(" The pool of the framework had a limit of %s; the size of the device is not in the text.", event.FormatBytes(l.pool))
	}
	switch {
	case l.mismatch():
		r.Verdict = "not_a_memory_problem"
		if l.rep.Loaded != "" {
			r.Why += fmt.Sprintf(" The text says why: cuDNN %s was loaded, and the program was built for %s.", l.rep.Loaded, l.rep.Compiled)
		} else {
			r.Why += " The library says why: its version does not fit the device or the program."
		}
		r.Next = []string{"Install the versions of CUDA and cuDNN that the framework was built for; no memory setting can help."}
		return
	case l.start != nil && full(l.start):
		r.Verdict = "device_already_full"
		r.Why += fmt.Sprintf(" Only %s of the device were free when the program began: others held it.", bfclog.Spaced(l.start.Free.Text))
		r.Next = []string{"See with nvidia-smi what holds the card before the program starts, and end it."}
		return
	case l.pool >= 0 && l.pool < startFree && l.dump == nil:
		r.Verdict = "limit_too_low"
		r.Why += fmt.Sprintf(" The pool could have only %s: either a limit was set, or others held the card when the program began.", event.FormatBytes(l.pool))
		r.Open = append(r.Open, "Which of the two it was is not in the text.")
		r.Next = []string{"See with nvidia-smi what holds the card before the program starts, and end it; if a memory limit or a fraction is set, raise it."}
		return
	case l.outside() && l.left >= 0 && l.left < muchLeft:
		r.Verdict = "no_room_for_library"
		r.Why += share
	case l.outside() || l.memory():
		r.Verdict = "undetermined_no_state"
		r.Why += share + " That is a lack of memory."
	default:
		r.Verdict = "undetermined_no_state"
		r.Why += share
		if l.left >= 0 && l.left < littleLeft {
			r.Cause = "no_room_for_library"
			r.Why += " That is little for a handle and its workspace, and the commonest reason."
		}
		r.Open = append(r.Open, "Whether it was for lack of memory is not in the text: versions that do not fit and a damaged installation say the same.")
	}
	r.Open = append(r.Open, "How much was asked for is not in the text.")
	if i := asked(l.list); i >= 0 {
		r.Open = r.Open[:len(r.Open)-1]
		r.Why += fmt.Sprintf(" It was %s.", event.FormatBytes(l.list[i].Bytes))
	}
	if l.pool < 0 && l.start != nil && l.start.Free.Known {
		r.Open = append(r.Open, "What the framework's pool took of it is not in the text; without a setting it takes nearly all that is free.")
	} else if l.pool < 0 {
		r.Open = append(r.Open, "The state of the device's memory is not in the text; the lines before would tell: what was free at the start, and an allocator's dump.")
	}
	l.next(r, lib)
}

func asked(list []liblog.Message) int {
	for i := range list {
		if list[i].Bytes >= 0 {
			return i
		}
	}
	return -1
}

func (l *told) next(r *reading.Reading, lib string) {
	if l.list[0].Class == liblog.Copy {
		r.Next = append(r.Next, "Keep the whole output of the run and read it again: the dump of the allocator above the message says why.",
			"Copy less to the device at a time: a smaller batch, and no whole data set as a constant.")
	} else {
		r.Next = append(r.Next, fmt.Sprintf("Leave room beside the pool: turn on memory growth (TF_FORCE_GPU_ALLOW_GROWTH=true) or set a lower memory limit. If the message goes away, %s was short of memory.", lib))
	}
	if l.start == nil || !l.start.Free.Known {
		r.Next = append(r.Next, "See with nvidia-smi what else holds the card.")
	}
	if !l.memory() {
		r.Next = append(r.Next, "If it stays on an empty card, compare the versions of CUDA and cuDNN with those that the framework was built for.")
	}
	for i := range l.list {
		if l.list[i].Class == liblog.RNN {
			r.Next = append(r.Next, "Look for sequences of length 0 and batches of size 0; a smaller batch or sequence needs a smaller workspace.")
			return
		}
	}
}
