package kernel

// BLAS is the name of the matrix product's library.
const BLAS = blasName

// SmallPieces makes calls of any size be shared among the cores, until the
// returned function is called.
func SmallPieces() (restore func()) {
	was, wasParallel := pieceNanos, parallel
	pieceNanos, parallel = 3, 4
	return func() { pieceNanos, parallel = was, wasParallel }
}

// LargePieces makes no call be shared.
func LargePieces() (restore func()) {
	was, wasParallel := pieceNanos, parallel
	pieceNanos, parallel = 1<<60, 1<<60
	return func() { pieceNanos, parallel = was, wasParallel }
}

// Half-precision numbers, for the tests of their conversion.
var (
	ToFloat16   = toFloat16
	FromFloat16 = fromFloat16
	ToBFloat16  = toBFloat16
	ToOdd       = toOdd
	Widen       = widen
	Round       = round
)

// FailingCall runs a call with a kernel that panics in a helper's goroutine.
func FailingCall(c *Call) error {
	c.entry = &entry{raw: true, phases: []phase{{units: func(*Call) int { return 100 }, weight: 1 << 20, f32: func(_ *Call, from, _ int) {
		if from > 50 {
			panic("index out of reach")
		}
	}}}}
	kernels["Failing"] = c.entry
	defer delete(kernels, "Failing")
	return Run(c)
}
