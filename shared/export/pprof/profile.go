package pprof

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"tideline/shared/export"
)

// The fields of a Profile and of its parts that are written, by the numbers of
// the format.
const (
	profileSampleType  = 1
	profileSample      = 2
	profileLocation    = 4
	profileFunction    = 5
	profileString      = 6
	profileComment     = 13
	profileDefaultType = 14

	valueType = 1
	valueUnit = 2

	sampleLocations = 1
	sampleValues    = 2
	sampleLabel     = 3
	labelKey        = 1
	labelText       = 2
	labelNumber     = 3
	labelUnit       = 4

	locationID       = 1
	locationLine     = 4
	lineFunction     = 1
	lineNumber       = 2
	functionID       = 1
	functionName     = 2
	functionSystem   = 3
	functionFile     = 4
	firstLocationNum = 1 // 0 means none
)

type call struct{ name, file string }

// profile writes messages as they come. Texts, functions and locations get
// their numbers when they are first needed, and are written at once: the
// format leaves the order of its fields free.
type profile struct {
	w         *bufio.Writer
	texts     map[string]uint64
	functions map[call]uint64
	locations map[export.Frame]uint64
	msg, part []byte
	inner     []byte
}

func newProfile(w io.Writer) *profile {
	p := &profile{w: bufio.NewWriter(w), texts: map[string]uint64{}, functions: map[call]uint64{}, locations: map[export.Frame]uint64{}}
	p.text("") // the first text is the empty one
	return p
}

func (p *profile) flush() error { return p.w.Flush() } //nolint:wrapcheck // Close words it

// put writes one message as a field of the profile.
func (p *profile) put(field protowire.Number, msg []byte) {
	p.part = protowire.AppendTag(p.part[:0], field, protowire.BytesType)
	p.part = protowire.AppendVarint(p.part, uint64(len(msg)))
	_, _ = p.w.Write(p.part) // flush returns the first error
	_, _ = p.w.Write(msg)
}

func number(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

// text is the number of a text.
func (p *profile) text(s string) uint64 {
	n, ok := p.texts[s]
	if !ok {
		n = uint64(len(p.texts))
		p.texts[s] = n
		p.put(profileString, []byte(strings.ToValidUTF8(s, "\ufffd"))) // the format has UTF-8 only
	}
	return n
}

func (p *profile) sampleType(name, unit string) {
	b := number(nil, valueType, p.text(name))
	p.put(profileSampleType, number(b, valueUnit, p.text(unit)))
}

func (p *profile) defaultType(name string) { p.value(profileDefaultType, p.text(name)) }
func (p *profile) comment(s string)        { p.value(profileComment, p.text(s)) }

func (p *profile) value(field protowire.Number, n uint64) {
	_, _ = p.w.Write(number(nil, field, n)) // flush returns the first error
}

// sample writes one line of the profile, of blocks of one size; frames come
// outermost first.
func (p *profile) sample(frames []export.Frame, values [3]int64, labels [][2]string, size int64) {
	ids := p.inner[:0]
	for _, f := range slices.Backward(frames) { // the format has the innermost first
		ids = protowire.AppendVarint(ids, p.location(f))
	}
	p.inner = ids
	b := protowire.AppendBytes(protowire.AppendTag(p.msg[:0], sampleLocations, protowire.BytesType), ids)
	var packed []byte
	for _, v := range values {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	b = protowire.AppendBytes(protowire.AppendTag(b, sampleValues, protowire.BytesType), packed)
	for _, l := range labels {
		m := number(nil, labelKey, p.text(l[0]))
		m = number(m, labelText, p.text(l[1]))
		b = protowire.AppendBytes(protowire.AppendTag(b, sampleLabel, protowire.BytesType), m)
	}
	// What Go's own heap profiles say of a sample's blocks, in the same words.
	m := number(nil, labelKey, p.text("bytes"))
	m = number(m, labelNumber, uint64(size))
	m = number(m, labelUnit, p.text("bytes"))
	b = protowire.AppendBytes(protowire.AppendTag(b, sampleLabel, protowire.BytesType), m)
	p.msg = b
	p.put(profileSample, b)
}

func (p *profile) location(f export.Frame) uint64 {
	if id, ok := p.locations[f]; ok {
		return id
	}
	id := uint64(len(p.locations)) + firstLocationNum
	p.locations[f] = id
	line := number(nil, lineFunction, p.function(call{f.Name, f.File}))
	line = number(line, lineNumber, uint64(f.Line))
	b := number(nil, locationID, id)
	b = protowire.AppendBytes(protowire.AppendTag(b, locationLine, protowire.BytesType), line)
	p.put(profileLocation, b)
	return id
}

func (p *profile) function(c call) uint64 {
	if id, ok := p.functions[c]; ok {
		return id
	}
	id := uint64(len(p.functions)) + firstLocationNum
	p.functions[c] = id
	b := number(nil, functionID, id)
	b = number(b, functionName, p.text(c.name))
	b = number(b, functionSystem, p.text(c.name))
	b = number(b, functionFile, p.text(c.file))
	p.put(profileFunction, b)
	return id
}
