package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// work is something whose units [0,n) can be computed in any order, each by
// itself.
type work interface {
	do(from, to int)
}

// job shares work among the cores. Which core computes what depends on chance,
// what comes out does not, since units are independent.
type job struct {
	w       work
	n, size int // units, and how many of them make a piece
	next    atomic.Int64
	helpers sync.WaitGroup
	// help is the method bound once, so that starting a goroutine costs no
	// memory.
	help   func()
	failed atomic.Pointer[failure]
	call   callWork
}

// failure is a panic on its way to the goroutine that waits.
type failure struct{ what any }

// maxHelpers bounds the goroutines of one job.
const maxHelpers = 64

var jobs = sync.Pool{New: func() any {
	j := new(job)
	j.help = func() {
		defer j.helpers.Done()
		defer func() {
			if p := recover(); p != nil {
				j.failed.CompareAndSwap(nil, &failure{p})
			}
		}()
		j.pieces()
	}
	return j
}}

func takeJob() *job { return jobs.Get().(*job) }

// split computes all units of w in pieces of the given size on all cores, and
// gives the job back. A panic of a helper goes on here.
func (j *job) split(w work, n, size int) {
	j.w, j.n, j.size = w, n, size
	j.next.Store(0)
	j.failed.Store(nil)
	for range min(runtime.GOMAXPROCS(0), (n+size-1)/size, maxHelpers) - 1 {
		j.helpers.Add(1)
		go j.help()
	}
	j.wait()
	f := j.failed.Load()
	j.w, j.call = nil, callWork{}
	jobs.Put(j)
	if f != nil {
		panic(f.what)
	}
}

// wait computes along and waits for the helpers, also when its own piece
// fails.
func (j *job) wait() {
	defer j.helpers.Wait()
	j.pieces()
}

// pieces computes pieces until none is left.
func (j *job) pieces() {
	for {
		from := (int(j.next.Add(1)) - 1) * j.size
		if from >= j.n {
			return
		}
		j.w.do(from, min(from+j.size, j.n))
	}
}
