// Package dataset holds the real data that runs train on: the UCI handwritten
// digits, 1,797 images of 8x8 pixels with 17 grey levels, embedded in the
// program. README.md beside this file says where they come from.
//
// It gives pixels and labels and the map function that scales an image up; in
// which order they are read is the input pipeline's affair.
package dataset
