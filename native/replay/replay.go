// Package replay is the command's "replay --answers": it reads an allocation
// trace from a file or pipe, packed or plain, and writes what the BFC allocator
// answers to it, address for address; or a table of requests, and what PyTorch's
// allocator answers.
//
// The playing itself is shared/alloc/trace and shared/alloc/torch/rows. What is
// added here is what only a process has: gzip and files for log and memory
// maps.
package replay

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/bfc/memdump"
	"tideline/shared/alloc/torch/rows"
	"tideline/shared/alloc/trace"
)

// Options say how a trace is answered. The zero value answers as the current
// upstream code does and writes nothing but the answers.
type Options struct {
	Profile bfc.Profile // bfc.Classic answers as TensorFlow did up to 2024
	Log     io.Writer   // gets what the allocator logged, if set
	OpName  string      // the running op's name in the log
	// MapPrefix, if not empty, writes the k-th memory map, serialised as
	// tensorflow.MemoryDump, to the file MapPrefix-k.pb.
	MapPrefix string
	// Torch is asked for what a table of requests does not say itself; nil where
	// nothing was said.
	Torch func() (rows.Options, error)
}

// ErrOptions says that a trace for the BFC allocator came with options of a table.
var ErrOptions = errors.New("a bfc-trace has its options in its own lines: leave limit and settings away")

// Answers reads a trace ("bfc-trace 1", optionally packed with gzip) from r
// and writes its answers ("bfc-answer 1") to w, or a table of requests
// ("op,id,size,stream") and a table of answers. An error of the trace names the
// line and what was expected there; the answers up to it have been written.
func Answers(r io.Reader, w io.Writer, o Options) error {
	in, err := unpacked(r)
	if err != nil {
		return err
	}
	if head, _ := in.Peek(len(rows.Header)); string(head) == rows.Header {
		var t rows.Options
		if o.Torch != nil {
			if t, err = o.Torch(); err != nil {
				return err
			}
		}
		return rows.Answer(in, w, t)
	}
	if o.Torch != nil {
		return ErrOptions
	}
	t := trace.AnswerOptions{Profile: o.Profile, Log: o.Log, OpName: o.OpName}
	if o.MapPrefix != "" {
		t.Map = func(k int, m bfc.Map) error { return writeMap(o.MapPrefix, k, &m) }
	}
	return trace.Answer(in, w, t)
}

// unpacked looks at the first bytes of r, so that nobody has to say whether
// they are packed.
func unpacked(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	// A shorter input is no gzip; reading it reports what else is wrong.
	if head, _ := b.Peek(2); len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("unpack trace: %w", err)
	}
	return bufio.NewReaderSize(z, 1<<16), nil
}

func writeMap(prefix string, k int, m *bfc.Map) error {
	name := fmt.Sprintf("%s-%d.pb", prefix, k)
	if err := os.WriteFile(name, memdump.Append(nil, m), 0o644); err != nil {
		return fmt.Errorf("write memory map %d: %w", k, err)
	}
	return nil
}
