package liblog

// Marks are what a line holds, one of them at least, that the parser reads. The
// case of letters does not count.
func Marks() []string {
	return []string{
		"dst tensor is not", "cudnn_status_", "cublas_status_", "cusolver_status_", "cusparse_status_", "cufft_", "cuda_error_out_of_memory",
		"get convolution algorithm", "cudnn failed to init", "gemm launch failed", "gemv launch failed", "thenrnn", "workspace", "scratch",
		"runtime cudnn library", "without blas support", "[[node", "{{node",
	}
}
