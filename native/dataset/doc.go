// Package dataset is what runs train on: the UCI handwritten digits, 1,797
// images of 8x8 pixels with 17 grey levels, embedded in the program (README.md
// beside this file says where they come from); and, for models that read
// tokens, text made by a rule whose entropy is known.
//
// It gives every model of the zoo what it reads, at the size that it asks for,
// and the labels; in which order elements are read is the input pipeline's
// affair.
package dataset
