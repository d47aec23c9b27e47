// Package jsontext reads JSON as a stream of tokens, in bounded memory, for
// files of hundreds of megabytes and for the browser module, which has no room
// for encoding/json.
//
// It is lenient where real exporters are wrong: a byte-order mark, NaN and
// Infinity, and commas before a closing bracket pass. Everything else that is
// no JSON is an error with its offset, and so are two things that are: nesting
// deeper than MaxDepth and a number longer than MaxNumber. A file that ends too early gives
// ErrTruncated, after the tokens that were whole.
package jsontext

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is what a token is.
type Kind uint8

// The kinds of token. Key is the name of an object's member.
const (
	End Kind = iota
	ObjectBegin
	ObjectEnd
	ArrayBegin
	ArrayEnd
	Key
	Text
	Number
	True
	False
	Null
)

// MaxDepth is how deep objects and arrays may nest.
const MaxDepth = 256

// MaxNumber is how many characters a number may have. The longest that any
// exporter writes, a float64 in full, has fewer; more is a broken file.
const MaxNumber = 400

// MaxText is how long a text may be, in bytes.
const MaxText = 64 << 20

// ErrTruncated is wrapped when the input ends within a value.
var ErrTruncated = errors.New("the JSON ends too early")

// Reader gives the tokens of one value.
type Reader struct {
	r    io.Reader
	buf  []byte
	pos  int
	base int64
	done bool
	err  error

	nest  []byte // '{' or '['
	state byte   // what may come: see the constants
	text  []byte
	kind  Kind
}

const (
	wantValue byte = iota
	wantKeyOrEnd
	wantValueOrEnd
	wantColon
	wantCommaOrEnd
	wantNothing
)

// New returns a reader of r.
func New(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, 0, 64<<10)}
}

// Offset is where the reader is.
func (d *Reader) Offset() int64 { return d.base + int64(d.pos) }

// Depth is how many objects and arrays are open.
func (d *Reader) Depth() int { return len(d.nest) }

// Bytes is the text of the last Key, Text or Number, until the next call.
func (d *Reader) Bytes() []byte { return d.text }

// Int is the last token as an integer: a number, or a text of one. A number
// with a fraction is cut.
func (d *Reader) Int() (int64, bool) {
	if n, err := strconv.ParseInt(string(d.text), 10, 64); err == nil {
		return n, d.kind == Number || d.kind == Text
	}
	if n, err := strconv.ParseUint(string(d.text), 10, 64); err == nil {
		return int64(n), d.kind == Number || d.kind == Text
	}
	f, ok := d.Float()
	if !ok || f >= 1<<63 || f < -1<<63 || f != f {
		return 0, false
	}
	return int64(f), true
}

// Float is the last token as a number: a number, or a text of one.
func (d *Reader) Float() (float64, bool) {
	f, err := strconv.ParseFloat(string(d.text), 64)
	return f, err == nil && (d.kind == Number || d.kind == Text)
}

func (d *Reader) fill() bool {
	if d.pos < len(d.buf) {
		return true
	}
	d.base += int64(len(d.buf))
	d.buf, d.pos = d.buf[:0], 0
	for idle := 0; !d.done && len(d.buf) == 0; idle++ {
		n, err := d.r.Read(d.buf[:cap(d.buf)])
		d.buf = d.buf[:n]
		if err == nil && n == 0 && idle > 100 {
			err = io.ErrNoProgress
		}
		if err != nil {
			d.done = true
			if !errors.Is(err, io.EOF) {
				d.err = err
			}
		}
	}
	return len(d.buf) > 0
}

func (d *Reader) cut() error {
	if d.err != nil {
		return fmt.Errorf("json: offset %d: read: %w", d.Offset(), d.err)
	}
	return fmt.Errorf("json: offset %d: %w", d.Offset(), ErrTruncated)
}

func (d *Reader) bad(format string, a ...any) error {
	return fmt.Errorf("json: offset %d: %s", d.Offset(), fmt.Sprintf(format, a...))
}

// Next is the next token; End after the value, which only blanks may follow.
func (d *Reader) Next() (Kind, error) {
	for {
		if !d.fill() {
			if d.state == wantNothing && d.err == nil {
				return End, nil
			}
			return End, d.cut()
		}
		c := d.buf[d.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			d.pos++
		case c == 0xef && d.Offset() == 0: // a byte-order mark
			for range 3 {
				if !d.fill() {
					return End, d.cut()
				}
				d.pos++
			}
		case d.state == wantColon && c == ':':
			d.pos++
			d.state = wantValue
		case d.state == wantCommaOrEnd && c == ',':
			d.pos++
			d.state = wantValueOrEnd
			if d.nest[len(d.nest)-1] == '{' {
				d.state = wantKeyOrEnd
			}
		default:
			k, err := d.token(c)
			d.kind = k
			return k, err
		}
	}
}

func (d *Reader) token(c byte) (Kind, error) {
	switch c {
	case '}', ']':
		return d.close(c)
	}
	switch d.state {
	case wantKeyOrEnd:
		if c != '"' {
			return End, d.bad("%q where a name was expected", c)
		}
		d.state = wantColon
		return Key, d.quoted()
	case wantValue, wantValueOrEnd:
		return d.value(c)
	default:
		return End, d.bad("%q where nothing of the kind was expected", c)
	}
}

func (d *Reader) close(c byte) (Kind, error) {
	if len(d.nest) == 0 || d.nest[len(d.nest)-1] != c-2 || d.state == wantColon || d.state == wantValue {
		return End, d.bad("%q closes nothing", c)
	}
	d.pos++
	d.nest = d.nest[:len(d.nest)-1]
	d.after()
	if c == '}' {
		return ObjectEnd, nil
	}
	return ArrayEnd, nil
}

func (d *Reader) after() {
	d.state = wantCommaOrEnd
	if len(d.nest) == 0 {
		d.state = wantNothing
	}
}

func (d *Reader) value(c byte) (Kind, error) {
	switch c {
	case '{', '[':
		if len(d.nest) == MaxDepth {
			return End, d.bad("nested deeper than the limit of %d", MaxDepth)
		}
		d.pos++
		d.nest = append(d.nest, c)
		if c == '{' {
			d.state = wantKeyOrEnd
			return ObjectBegin, nil
		}
		d.state = wantValueOrEnd
		return ArrayBegin, nil
	case '"':
		d.after()
		return Text, d.quoted()
	}
	d.text = d.text[:0]
	for d.fill() {
		c := d.buf[d.pos]
		if c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			break
		}
		if len(d.text) >= MaxNumber {
			return End, d.bad("a number of more than %d characters", MaxNumber)
		}
		d.text = append(d.text, c)
		d.pos++
	}
	if d.err != nil {
		return End, d.cut()
	}
	whole := d.pos < len(d.buf) || len(d.nest) == 0 // else the input may have ended within it
	d.after()
	switch string(d.text) {
	case "true":
		return True, nil
	case "false":
		return False, nil
	case "null":
		return Null, nil
	case "":
		return End, d.bad("%q is the beginning of no value", c)
	default:
		if !whole {
			return End, d.cut()
		}
		if plain(d.text) {
			return Number, nil
		}
		if _, err := strconv.ParseFloat(string(d.text), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return End, d.bad("%q is no value", d.text)
		}
		return Number, nil
	}
}

// plain reports whether b is a number of digits with at most one point among
// them, as nearly all are.
func plain(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	points, digits := 0, 0
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && points == 0 && digits > 0:
			points++
		default:
			return false
		}
	}
	return digits > 0 && b[len(b)-1] != '.'
}

// quoted reads a text from its opening quote on.
func (d *Reader) quoted() error {
	d.text = d.text[:0]
	d.pos++
	for {
		if !d.fill() {
			return d.cut()
		}
		rest := d.buf[d.pos:]
		n := 0
		for n < len(rest) && rest[n] != '"' && rest[n] != '\\' {
			n++
		}
		d.text = append(d.text, rest[:n]...)
		d.pos += n
		if len(d.text) > MaxText {
			return d.bad("a text longer than the limit of %d bytes", MaxText)
		}
		if n == len(rest) {
			continue
		}
		d.pos++
		if rest[n] == '"' {
			return nil
		}
		if err := d.escape(); err != nil {
			return err
		}
	}
}

func (d *Reader) escape() error {
	if !d.fill() {
		return d.cut()
	}
	c := d.buf[d.pos]
	d.pos++
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		return d.unicode()
	}
	d.text = append(d.text, c)
	return nil
}

func (d *Reader) unicode() error {
	r, err := d.hex4()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) && d.fill() && d.buf[d.pos] == '\\' {
		d.pos++
		if !d.fill() {
			return d.cut()
		}
		if d.buf[d.pos] != 'u' {
			d.text = utf8.AppendRune(d.text, utf8.RuneError)
			return d.escape()
		}
		d.pos++
		low, err := d.hex4()
		if err != nil {
			return err
		}
		r = utf16.DecodeRune(r, low)
	}
	d.text = utf8.AppendRune(d.text, r)
	return nil
}

func (d *Reader) hex4() (rune, error) {
	var r rune
	for range 4 {
		if !d.fill() {
			return 0, d.cut()
		}
		c := d.buf[d.pos]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, d.bad("%q is no hexadecimal digit", c)
		}
		r = r<<4 | rune(c)
		d.pos++
	}
	return r, nil
}

// Skip passes over the value that comes next, or, after a token that opened an
// object or array, over the rest of it.
func (d *Reader) Skip(last Kind) error {
	depth := len(d.nest)
	switch last {
	case ObjectBegin, ArrayBegin:
		depth--
	case Key:
	default:
		return nil
	}
	for {
		if _, err := d.Next(); err != nil {
			return err
		}
		if len(d.nest) <= depth {
			return nil
		}
	}
}
