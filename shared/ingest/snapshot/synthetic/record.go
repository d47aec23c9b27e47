package synthetic

import (
	"io"

	"tideline/shared/alloc/torch"
)

// Record writes what an allocator holds and did as a snapshot file, for tests
// that make a program of their own. settings is the allocator's settings string.
func Record(w io.Writer, segments []torch.SnapshotSegment, trace []torch.TraceEntry, settings string) error {
	s, err := Shape{Settings: settings, Stacks: 16, Depth: 4}.complete()
	if err != nil {
		return err
	}
	parsed, err := torch.ParseSettings(settings)
	if err != nil {
		return err
	}
	f := file{Shape: s, pickler: newPickler(w, s.Protocol), settings: parsed}
	f.write(segments, trace)
	return f.finish()
}
