// Package memdump writes a BFC allocator's memory map as the protobuf message
// tensorflow.MemoryDump, as upstream does when TF_BFC_MEMORY_DUMP is set.
//
// It stands apart from package bfc so that the browser module, which never
// writes the message, carries no protobuf code. It does not read the message.
package memdump

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"tideline/shared/alloc/bfc"
)

// The field numbers of MemoryDump and of the messages in it.
const (
	dumpName  = 1
	dumpBin   = 2
	dumpChunk = 3
	dumpStats = 5

	binNumber      = 1
	binBytesInUse  = 2
	binBytes       = 3
	binChunksInUse = 4
	binChunks      = 5

	chunkAddress   = 1
	chunkSize      = 2
	chunkRequested = 3
	chunkBin       = 4
	chunkFreedAt   = 6
	chunkInUse     = 8

	statAllocs        = 1
	statInUse         = 2
	statPeak          = 3
	statLargest       = 4
	statFragmentation = 5
)

// Append appends the message to b, fields in the order of their numbers and
// without those that are zero, as the C++ serialiser writes it.
func Append(b []byte, m *bfc.Map) []byte {
	if m.Name != "" {
		b = protowire.AppendTag(b, dumpName, protowire.BytesType)
		b = protowire.AppendString(b, m.Name)
	}
	var part []byte
	for i := range m.Bins {
		part = appendBin(part[:0], i, &m.Bins[i])
		b = appendMessage(b, dumpBin, part)
	}
	for i := range m.Regions {
		for j := range m.Regions[i].Chunks {
			part = appendChunk(part[:0], &m.Regions[i].Chunks[j], m.Stamped)
			b = appendMessage(b, dumpChunk, part)
		}
	}
	return appendMessage(b, dumpStats, appendStats(part[:0], m))
}

func appendMessage(b []byte, field protowire.Number, part []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, part)
}

func appendInt(b []byte, field protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(n))
}

func appendBin(b []byte, number int, s *bfc.BinSummary) []byte {
	b = appendInt(b, binNumber, int64(number))
	b = appendInt(b, binBytesInUse, s.BytesInUse)
	b = appendInt(b, binBytes, s.Bytes)
	b = appendInt(b, binChunksInUse, s.ChunksInUse)
	return appendInt(b, binChunks, s.Chunks)
}

func appendChunk(b []byte, c *bfc.MapChunk, stamped bool) []byte {
	b = appendInt(b, chunkAddress, int64(c.Address))
	b = appendInt(b, chunkSize, c.Size)
	b = appendInt(b, chunkRequested, c.Requested)
	b = appendInt(b, chunkBin, int64(c.Bin))
	if c.InUse() {
		return appendInt(b, chunkInUse, 1)
	}
	if stamped {
		b = appendInt(b, chunkFreedAt, int64(c.FreedAt))
	}
	return b
}

func appendStats(b []byte, m *bfc.Map) []byte {
	s := &m.Stats
	b = appendInt(b, statAllocs, s.NumAllocs)
	b = appendInt(b, statInUse, s.InUse)
	b = appendInt(b, statPeak, s.PeakInUse)
	b = appendInt(b, statLargest, s.LargestAlloc)
	f := float32(m.Fragmentation)
	bits := math.Float32bits(f)
	if f != f {
		// 0/0 on x86-64 is the negative quiet NaN.
		bits = 0xffc00000
	}
	if bits == 0 {
		return b
	}
	b = protowire.AppendTag(b, statFragmentation, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, bits)
}
