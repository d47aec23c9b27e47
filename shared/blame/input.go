package blame

import (
	"fmt"
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
	op   event.StringID
	size int64
}

// maxRepeated bounds what is told apart.
const maxRepeated = 4096

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
	var times int64
	for k, n := range r.copies.arrays {
		if n < 2 || k.size < leastInput || !isHostArray(r.strs.At(k.op)) {
			continue
		}
		if a, b := k.size*n, again.size*times; a > b || a == b && k.op < again.op {
			again, times = k, n
		}
	}
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
		s := event.FormatBytes(held) + " in 1 block"
		if blocks != 1 {
			s = fmt.Sprintf("%s in %d blocks", event.FormatBytes(held), blocks)
		}
		words = append(words, s)
	}
	if times > 0 {
		words = append(words, fmt.Sprintf("%s copied there %d times", event.FormatBytes(again.size), times))
	}
	x.Row("arrays of the host on the device", strings.Join(words, ", ")+", by "+op)
	x.Next = append(x.Next, "The op "+op+" makes a tensor of a whole array of the host, on the device. If that is the data: keep it on the host (with tf.device(\"/CPU:0\")) or slice it before the copy, so that only a batch goes there.")
}

// ofHost says by an allocator's name that its memory is not a device's.
func ofHost(pool string) bool {
	pool = strings.ToLower(pool)
	return strings.Contains(pool, "cpu") || strings.Contains(pool, "host") || strings.Contains(pool, "pinned")
}
