package alloc_test

import (
	"reflect"
	"testing"
	"unsafe"

	"tideline/shared/alloc"
)

// Beyond these bounds the compiler keeps a request in memory, and as
// WebAssembly every allocator loses a quarter of its speed.
func TestARequestIsPassedAsValues(t *testing.T) {
	if n := reflect.TypeFor[alloc.Request]().NumField(); n > 4 {
		t.Errorf("a request has %d fields, more than 4", n)
	}
	if size := unsafe.Sizeof(alloc.Request{}); size > 4*unsafe.Sizeof(uintptr(0)) {
		t.Errorf("a request has %d bytes, more than 4 words", size)
	}
}
