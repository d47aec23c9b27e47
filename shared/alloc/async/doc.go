// Package async models the CUDA driver's stream-ordered pool (cudaMallocAsync).
//
// The driver is closed, so nothing here is exact but what its documentation
// says: the release threshold, the three ways to use memory again that another
// stream freed, the attributes. The layout is a model: requests below a page
// are packed into shared pages, first fit by address; larger ones take whole
// pages, put together from any free ones, because the driver can map a page
// anywhere. What the model is meant to get right is how much is reserved, how
// much is used, and whether a request fits. Wherever a figure of this allocator
// is shown, Label must stand beside it; Modelled says so to programs.
//
// Sources: CUDA's documentation of pool attributes and from TensorFlow's, RMM's and PyTorch's
// use of it. Choices of ours: the granule of 512 bytes, the page of 2 MiB, that
// pages go back from the highest address down, that a request that would fail
// synchronises once.
//
// It has no clock: a stream.Order says how far streams have come.
package async

// Label is what must stand beside this allocator's results.
const Label = "modelled: the driver's layout is not public"

// Modelled reports that the allocator's layout is a model.
func (p *Pool) Modelled() bool { return true }
