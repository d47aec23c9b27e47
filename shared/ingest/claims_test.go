package ingest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"runtime"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// claimingBlock is the beginning of a timeline whose first block claims to be
// of so many bytes, with the header's checksum over the claim.
func claimingBlock(payload uint32) string {
	b := timeline.AppendHeader(nil)
	at := len(b)
	b = block.Make(b, block.Header{Kind: block.Events, Events: 1}, make([]byte, 64))
	le := binary.LittleEndian
	le.PutUint32(b[at+44:], payload) // as stored
	le.PutUint32(b[at+48:], payload) // after inflation
	le.PutUint32(b[at+56:], block.Checksum(b[at:at+56]))
	return string(b[:at+block.HeaderSize])
}

// claiming are short files of every kind that claim to hold, or to be about,
// 4 GiB and more.
var claiming = map[string]string{
	"snapshot":              "\x80\x02}q\x00X\xff\xff\xff\xffsegments",
	"snapshot, list":        "\x80\x04}\x94\x8c\x08segments\x94]\x94r\xff\xff\xff\xff",
	"XSpace":                "\x0a\xff\xff\xff\xff\x0f\x12\x06/d:GPU",
	"XSpace, plane":         "\x0a\x0c\x12\x02/x\x1a\xff\xff\xff\xff\x0f\x01\x01\x01",
	"pprof":                 "\x0a\x04\x08\x01\x10\x02\x12\xff\xff\xff\xff\x0f\x32\x00",
	"memory map":            "\x0a\x01g\x12\x00\x12\x02\x08\x01\x1a\xff\xff\xff\xff\x0f\x08",
	"memory map, bin":       "\x0a\x01g\x12\x00\x12\x02\x08\x01\x12\xff\xff\xff\xff\x0f\x08",
	"Chrome trace":          `{"traceEvents":[{"ph":"X","ts":4294967296,"dur":1e400,"args":{"bytes":18446744073709551616}}`,
	"memory profile":        `{"memoryProfilePerAllocator":{"x":{"memoryProfileSnapshots":[{"timeOffsetPs":"99999999999999999999"`,
	"timeline of 4 GiB":     claimingBlock(1<<32 - 1),
	"timeline, longest":     claimingBlock(block.MaxPayload),
	"timeline, cut":         "\x89TIDE\r\n\x1a\x01\x00\x00\x00\xff\xff\xff\xffTDLB\xff\xff\xff\xff\xff\xff\xff\xff",
	"timeline's text":       "tideline 1\nalloc 4294967296 4294967296 4294967296\n",
	"BFC dump":              "Bin (256): \tTotal Chunks: 4294967296, Chunks in use: 4294967296.",
	"BFC chunks":            "4294967296 Chunks of size 4294967296 totalling 16384.00PiB",
	"BFC region":            "Next region of size 18446744073709551615",
	"XLA":                   "Out of memory while trying to allocate 18446744073709551615 bytes.",
	"XLA shape":             "Allocation type: HLO temp\nShape: f32[4294967296,4294967296]{1,0}",
	"PyTorch":               "CUDA out of memory. Tried to allocate 4294967296.00 GiB",
	"ONNX Runtime":          "bfc_arena.cc:1 Failed to allocate memory for requested buffer of size 18446744073709551615",
	"RMM":                   "Thread,Time,Action,Pointer,Size,Stream\n1,0:0:0,allocate,0x1,4294967296,0",
	"nvidia-smi":            "| NVIDIA-SMI 1 |\n| 4294967296MiB / 4294967296MiB |",
	"nvidia-smi, CSV":       "index, memory.used [MiB]\n4294967296, 4294967296 MiB",
	"LOG_MEMORY":            "__LOG_MEMORY__ MemoryLogRawAllocation { step_id: 4294967296 num_bytes: 4294967296 ptr: 4294967296 }",
	"steps":                 "[4294967295/4294967296] memory: 4294967296 GB",
	"driver":                "failed to allocate 4096.00G (18446744073709551615 bytes) from device: memory",
	"gzip of nothing":       "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	"gzip that claims more": packedText("\x80\x02}q\x00X\xff\xff\xff\xffsegments"),
}

func packedText(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s) // into memory: it cannot fail
	_ = z.Close()
	return b.String()
}

// What readers take before they look is of a fixed size: windows on the file,
// and an encoder for the history that rows and records are. What a file claims
// adds nothing to that.
const windows = 8 << 20

func TestAClaimedLengthCostsNothing(t *testing.T) {
	for name, file := range claiming {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		in, err := Open(name, strings.NewReader(file), Limits{})
		if err == nil {
			_ = in.Emit(new(event.Strings), event.SinkFunc(func(*event.Event) {})) // a cut file may be told in part
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > windows {
			t.Errorf("%s: %d bytes taken for a file of %d", name, got, len(file))
		}
	}
}
