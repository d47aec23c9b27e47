package blame

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

// leastInput is from when on an array on the device is worth a word, in bytes:
// what a constant of a model's own takes is far less, and a batch of images is
// about as much but comes from an iterator.
const leastInput = 16 << 20

// repeated are copies of one size to the device for one op.
type repeated struct {
	op    event.StringID
	size  int64
	times int64
}

// maxRepeated bounds what is told apart: there are few that large.
const maxRepeated = 256

// isHostArray says of an op of TensorFlow whether it makes a tensor of an array
// that the program has in host memory: whole, each time that it runs.
func isHostArray(op string) bool {
	op = op[strings.LastIndexByte(op, '/')+1:]
	op, _, _ = strings.Cut(op, ":")
	op = strings.TrimRight(op, "0123456789")
	return strings.TrimPrefix(strings.TrimSuffix(op, "_"), "_") == "EagerConst" || strings.TrimSuffix(op, "_") == "Const"
}

// input finds arrays of the program that lie on the device as a whole, or are
// copied there again and again: mostly the data of which a batch was wanted.
func (r *Recorder) input(x *reading.Reading) {
	const name = "input_on_device"
	if _, told := x.Facts.Get(name); told {
		return
	}
	var op string
	var held, blocks, of int64
	for i := range x.Held {
		h := &x.Held[i]
		if h.At == "end" || ofHost(h.Pool) {
			continue
		}
		for k := range h.Holders {
			if o := &h.Holders[k]; o.Bytes >= leastInput && isHostArray(o.Name) && o.Bytes > held {
				op, held, blocks, of = o.Name, o.Bytes, o.Blocks, h.Bytes
			}
		}
	}
	var again repeated
	for _, x := range r.copies.arrays {
		if x.times > 1 && x.size*x.times > again.size*again.times && isHostArray(r.strs.At(x.op)) {
			again = x
		}
	}
	times := again.times
	if held == 0 && times == 0 {
		x.Facts.Null(name)
		return
	}
	if held == 0 {
		op = r.strs.At(again.op)
	}
	var f reading.Facts
	f.Text("op", op)
	f.IntIf("held_bytes", held, held > 0)
	f.IntIf("held_blocks", blocks, held > 0)
	f.IntIf("held_of_bytes", of, held > 0)
	f.IntIf("copied_bytes", again.size, times > 0)
	f.IntIf("copies", times, times > 0)
	x.Facts.Set(name, reading.Object(f))
	x.Flags = append(x.Flags, name)
	var words []string
	if held > 0 {
		s := event.FormatBytes(held) + " in " + strconv.FormatInt(blocks, 10) + " block"
		if blocks != 1 {
			s += "s"
		}
		words = append(words, s)
	}
	if times > 0 {
		words = append(words, event.FormatBytes(again.size)+" copied there "+strconv.FormatInt(times, 10)+" times")
	}
	x.Row("arrays of the host on the device", strings.Join(words, ", ")+", by "+op)
	x.Next = append(x.Next, "The op "+op+" makes a tensor of a whole array of the host, on the device. If that is the data: keep it on the host (with tf.device(\"/CPU:0\")) or slice it before the copy, so that only a batch goes there.")
}

// ofHost says by an allocator's name that its memory is not a device's.
func ofHost(pool string) bool {
	pool = strings.ToLower(pool)
	return strings.Contains(pool, "cpu") || strings.Contains(pool, "host") || strings.Contains(pool, "pinned")
}
