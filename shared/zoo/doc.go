// Package zoo is the model zoo: named models whose layers, parameter counts and
// sizes are those of the published ones, each built as one training or
// evaluation step of package program, in any of the number formats, with any
// of the optimizers.
//
// A model is a few lines over layers that all models share, and a description
// that pages and validation can list. Nothing here knows devices, executors or
// data.
package zoo
