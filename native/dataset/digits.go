package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

//go:embed digits.csv.gz
var digitsGz []byte

// Count, Side, Classes and Levels describe the digits.
const (
	Count   = 1797 // images
	Side    = 8    // pixels
	Classes = 10
	Levels  = 16 // the brightest pixel's value
)

// heldOutEvery is the share of the split: one image in five is held out.
const heldOutEvery = 5

// TrainCount and HeldOutCount are the sizes of the two parts.
const (
	HeldOutCount = Count / heldOutEvery
	TrainCount   = Count - HeldOutCount
)

// Digits is one set of images with what they show.
type Digits struct {
	Images []uint8 // Side*Side values from 0 to Levels for each image
	Labels []uint8 // 0 to 9
}

// Len is the number of images.
func (d *Digits) Len() int { return len(d.Labels) }

// Image is the pixels of image i.
func (d *Digits) Image(i int) []uint8 { return d.Images[i*Side*Side:][:Side*Side] }

// Load gives the images to train on and those held out: every fifth image of
// the file, 359 in all. Both are read once and shared; callers do not change
// them.
func Load() (train, heldOut *Digits, err error) {
	s, err := loaded()
	return s.train, s.heldOut, err
}

type split struct{ train, heldOut *Digits }

var loaded = sync.OnceValues(func() (split, error) {
	z, err := gzip.NewReader(bytes.NewReader(digitsGz))
	if err != nil {
		return split{}, fmt.Errorf("digits: %w", err)
	}
	all, err := read(z)
	if err != nil {
		return split{}, err
	}
	if all.Len() != Count {
		return split{}, fmt.Errorf("digits: %d images, want %d", all.Len(), Count)
	}
	return all.split(), nil
})

func (d *Digits) split() split {
	s := split{&Digits{}, &Digits{}}
	for i := range d.Labels {
		to := s.train
		if i%heldOutEvery == heldOutEvery-1 {
			to = s.heldOut
		}
		to.Images = append(to.Images, d.Image(i)...)
		to.Labels = append(to.Labels, d.Labels[i])
	}
	return s
}

// read reads lines of 64 pixels and a label, separated by commas. An error
// names the line.
func read(r io.Reader) (*Digits, error) {
	d := &Digits{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) != Side*Side+1 {
			return d, fmt.Errorf("digits, line %d: %d fields, want %d", n, len(fields), Side*Side+1)
		}
		for i, f := range fields {
			limit := Levels
			if i == Side*Side {
				limit = Classes - 1
			}
			v, err := strconv.Atoi(f)
			if err != nil || v < 0 || v > limit {
				return d, fmt.Errorf("digits, line %d, field %d: %q is not a number from 0 to %d", n, i+1, f, limit)
			}
			if i == Side*Side {
				d.Labels = append(d.Labels, uint8(v))
			} else {
				d.Images = append(d.Images, uint8(v))
			}
		}
	}
	if err := lines.Err(); err != nil {
		return d, fmt.Errorf("digits: %w", err)
	}
	return d, nil
}
