// Package whatif lists the settings that may help a run that waits for its
// input, and tries them on the modelled pipeline by itself. It stands apart
// from package input, which the viewer's module carries, because it brings the
// whole pipeline with it.
package whatif
