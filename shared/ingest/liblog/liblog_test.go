package liblog

import (
	"errors"
	"strings"
	"testing"
)

// lines that people posted, in the wordings of ten years.
var wordings = []struct {
	text string
	want []Message // Line 0: not compared
}{
	{"tensorflow.python.framework.errors_impl.InternalError: Dst tensor is not initialized.\n\t [[Node: zeros_12 = Const[dtype=DT_FLOAT]()]]", []Message{{Class: Copy, Count: 1, Node: "zeros_12", Bytes: -1}}},
	{"E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\nE tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED", []Message{{Class: BLAS, Status: "CUBLAS_STATUS_ALLOC_FAILED", Count: 2, Bytes: -1}}},
	{"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", []Message{{Class: BLAS, Status: "CUBLAS_STATUS_ALLOC_FAILED", Count: 1, Bytes: -1}}},
	{"Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\nUnknownError:  Failed to get convolution algorithm. This is probably because cuDNN failed to initialize, so try looking\n\t [[{{node tower_0/conv1d/Conv2D}}]]", []Message{{Class: DNN, Status: "CUDNN_STATUS_INTERNAL_ERROR", Count: 1, Bytes: -1}, {Class: Algorithm, Count: 1, Node: "tower_0/conv1d/Conv2D", Bytes: -1}}},
	{"Internal: Blas SGEMM launch failed : a.shape=(455, 12), b.shape=(12, 16), m=455\n         [[Node: RNN/MatMul = MatMul[T=DT_FLOAT]]", []Message{{Class: Launch, Count: 1, Node: "RNN/MatMul", Bytes: -1}}},
	{"InternalError: Blas GEMM launch failed : a.shape=(8, 4) [Op:MatMul]", []Message{{Class: Launch, Count: 1, Node: "MatMul", Bytes: -1}}},
	{"Internal: Failed to call ThenRnnForward with model config: [rnn_mode, 2, 0, 0]", []Message{{Class: RNN, Count: 1, Bytes: -1}}},
	{"cuSolver: CUSOLVER_STATUS_ALLOC_FAILED\nCUFFT_ALLOC_FAILED", []Message{{Class: Solver, Status: "CUSOLVER_STATUS_ALLOC_FAILED", Count: 1, Bytes: -1}, {Class: FFT, Status: "CUFFT_ALLOC_FAILED", Count: 1, Bytes: -1}}},
	{"Failed to allocate the cuDNN workspace of 1073741824 bytes", []Message{{Class: Workspace, Count: 1, Bytes: 1 << 30}}},
	{"CUDA_ERROR_OUT_OF_MEMORY: out of memory", []Message{{Class: Driver, Count: 1, Bytes: -1}}},
	{"CUDNN_STATUS_NOT_SUPPORTED while trying CUDNN_STATUS_EXECUTION_FAILED", []Message{{Class: DNN, Status: "CUDNN_STATUS_EXECUTION_FAILED", Count: 1, Bytes: -1}}},
}

func TestWordings(t *testing.T) {
	for _, w := range wordings {
		r, err := Read(strings.NewReader(w.text))
		if err != nil {
			t.Errorf("%q: %v", w.text, err)
			continue
		}
		for i := range r.Messages {
			if r.Messages[i].Line == 0 {
				t.Errorf("%q: no line", w.text)
			}
			r.Messages[i].Line = 0
		}
		if len(r.Messages) != len(w.want) {
			t.Errorf("%q: %+v", w.text, r.Messages)
			continue
		}
		for i, m := range r.Messages {
			if m != w.want[i] {
				t.Errorf("%q: %+v, not %+v", w.text, m, w.want[i])
			}
		}
	}
}

func TestNoFailure(t *testing.T) {
	for _, s := range []string{
		"", "Successfully opened dynamic library cudnn64_7.dll", "CUDNN_STATUS_SUCCESS", "conv op was not run: CUDNN_STATUS_NOT_SUPPORTED",
		"loading workspace /home/me/workspace\nout of scratch paper", "Failed to allocate 3 seats", "CUFFT_", "[[{{node a}}]]", "training from scratch",
	} {
		if r, err := Read(strings.NewReader(s)); !errors.Is(err, ErrNothing) {
			t.Errorf("%q: %+v, %v", s, r, err)
		}
	}
}

func TestVersions(t *testing.T) {
	r, err := Read(strings.NewReader("E cuda_dnn.cc:319] Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.6.0.  CuDNN library needs to have matching major version\nFailed to get convolution algorithm. This"))
	if err != nil || r.Loaded != "7.1.2" || r.Compiled != "7.6.0" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEveryLineReadHasAMark: without one it would not be seen beside other readers.
func TestEveryLineReadHasAMark(t *testing.T) {
	for _, w := range wordings {
		p := New()
		for i, l := range strings.Split(w.text, "\n") {
			if p.Line(i+1, l) && !marked(l) {
				t.Errorf("%q is read and holds no mark", l)
			}
		}
	}
}

func marked(s string) bool {
	for _, m := range Marks() {
		if strings.Contains(strings.ToLower(s), m) {
			return true
		}
	}
	return false
}

func FuzzRead(f *testing.F) {
	for _, w := range wordings {
		f.Add(w.text)
	}
	f.Add("Loaded runtime CuDNN library: 7 but compiled with: 8.\nCUDNN_STATUS_\nscratch ut of memory 99999999999999999999 bytes[[node ]]")
	f.Add("GEMMlaunch failed0")
	f.Add("0ailed to allocateorkspace")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Read(strings.NewReader(s))
		if (err == nil) == r.Empty() || len(r.Messages) > r.Count || len(r.Messages) > maxMessages {
			t.Errorf("%v with %+v", err, r)
		}
		p := New()
		for i, l := range strings.Split(s, "\n") {
			if p.Line(i+1, l) && !marked(l) {
				t.Errorf("%q is read and holds no mark", l)
			}
		}
	})
}
