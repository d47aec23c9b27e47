//go:build cuda

package cuda

import (
	"errors"

	"gorgonia.org/cu"
)

// harmless are the errors after which a context goes on as before. All others
// of the driver are taken for the end of the context, because most of them are
// and a run must not go on with memory that may be gone.
var harmless = []error{cu.OutOfMemory, cu.InvalidValue, cu.NotReady, cu.NotSupported, cu.InvalidHandle, cu.NotFound, cu.LaunchOutOfResources}

func fatal(err error) bool {
	for _, h := range harmless {
		if errors.Is(err, h) {
			return false
		}
	}
	return true
}
