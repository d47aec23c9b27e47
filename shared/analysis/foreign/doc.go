// Package foreign says what other programs' memory texts mean: PyTorch's
// messages and tables, XLA's reports, ONNX Runtime's arena, RMM's log,
// nvidia-smi's screens, TensorFlow's memory log, and figures that a training
// loop prints.
//
// There is one pure function for each kind, from what its reader in
// shared/ingest found to reading.Reading. The rules are those of package cause,
// fed with what the text tells; where it leaves a choice open, the verdict says
// so. Dumps of the BFC allocator itself are judged by package analysis.
package foreign
