package chrome

import (
	"math"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

// Processes. Zero is the idle process to viewers, and hidden.
const (
	runProcess      int64 = 1
	pipelineProcess int64 = 2
	firstDevice     int64 = 10
)

func quoted(b []byte, s string) []byte { return reading.AppendQuoted(b, s) }

// item begins one element of the list; whoever calls it ends with put.
func (w *Writer) item(phase byte, pid, tid int64, name string) {
	w.buf = append(w.buf[:0], ",\n{\"ph\":\""...)
	w.buf = append(w.buf, phase)
	w.buf = append(w.buf, "\",\"pid\":"...)
	w.buf = strconv.AppendInt(w.buf, pid, 10)
	if tid >= 0 {
		w.buf = append(w.buf, ",\"tid\":"...)
		w.buf = strconv.AppendInt(w.buf, tid, 10)
	}
	w.buf = append(w.buf, ",\"name\":"...)
	w.buf = quoted(w.buf, name)
}

func (w *Writer) put() {
	w.buf = append(w.buf, '}')
	b := w.buf
	if !w.comma {
		w.comma, b = true, b[1:]
	}
	_, _ = w.out.Write(b) // Flush returns the first error
}

// micros appends a time in microseconds without loss.
func (w *Writer) micros(key string, ns int64) {
	w.buf = append(append(w.buf, ",\""...), key...)
	w.buf = append(w.buf, "\":"...)
	if ns < 0 {
		w.buf = append(w.buf, '-')
		ns = -ns
	}
	w.buf = strconv.AppendInt(w.buf, ns/1000, 10)
	w.buf = append(w.buf, '.', byte('0'+ns/100%10), byte('0'+ns/10%10), byte('0'+ns%10))
}

func (w *Writer) args() { w.buf = append(w.buf, ",\"args\":{"...) }

func (w *Writer) endArgs() { w.buf = append(w.buf, '}') }

func (w *Writer) key(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(quoted(w.buf, name), ':')
}

func (w *Writer) number(name string, n int64) {
	w.key(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// text adds an argument unless it is empty.
func (w *Writer) text(name, s string) {
	if s != "" {
		w.key(name)
		w.buf = quoted(w.buf, s)
	}
}

// instant writes a moment. scope is t for its thread, p for its process, g for
// all.
func (w *Writer) instant(e *event.Event, pid int64, name, scope string, args func()) {
	tr := w.track(trackKey{pid, remarks, 0}, "remarks")
	w.item('i', pid, tr.lane(0), name)
	w.micros("ts", e.Time)
	w.buf = append(append(append(w.buf, ",\"s\":\""...), scope...), '"')
	w.args()
	args()
	w.endArgs()
	w.put()
}

func (w *Writer) counter(pid, at int64, name, series string, n int64) {
	if pid == pipelineProcess {
		w.process(pid, "input pipeline", 1)
	}
	w.item('C', pid, -1, name)
	w.micros("ts", at)
	w.args()
	w.number(series, n)
	w.endArgs()
	w.put()
}

func (w *Writer) metric(e *event.Event) {
	f := math.Float64frombits(uint64(e.Size))
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return // JSON has no such numbers
	}
	w.item('C', runProcess, -1, w.strs.At(e.Op))
	w.micros("ts", e.Time)
	w.args()
	w.key("value")
	w.buf = strconv.AppendFloat(w.buf, f, 'g', -1, 64)
	w.endArgs()
	w.put()
}

// meta names a process or a thread.
func (w *Writer) meta(what string, pid, tid int64, name string) {
	w.item('M', pid, tid, what)
	w.args()
	w.text("name", name)
	w.endArgs()
	w.put()
}

func (w *Writer) sortIndex(what string, pid, tid, n int64) {
	w.item('M', pid, tid, what)
	w.args()
	w.number("sort_index", n)
	w.endArgs()
	w.put()
}

func (w *Writer) process(pid int64, name string, order int64) {
	if w.named[pid] {
		return
	}
	w.named[pid] = true
	w.meta("process_name", pid, -1, name)
	w.sortIndex("process_sort_index", pid, -1, order)
}

// device is the process of a device.
func (w *Writer) device(id event.DeviceID) int64 {
	pid := firstDevice + int64(id)
	if !w.named[pid] {
		d := w.places.Device(id)
		w.process(pid, processName(d.Name, d.Host), pid)
	}
	return pid
}

// processName is a device's name as traces have it: /device:GPU:0, and
// /host:CPU for the host.
func processName(name string, host bool) string {
	short := name
	if i := strings.LastIndex(short, "/device:"); i >= 0 {
		short = short[i+len("/device:"):]
	}
	short = strings.TrimPrefix(short, "/")
	kind, n, ok := strings.Cut(short, ":")
	if _, err := strconv.ParseUint(n, 10, 16); !ok || err != nil {
		return name
	}
	if host {
		if n == "0" {
			return "/host:CPU"
		}
		return "/host:CPU:" + n
	}
	return "/device:" + strings.ToUpper(kind) + ":" + n
}
