//go:build !unix && !js

package draw

import "time"

var began = time.Now()

// cpu stands in where a process cannot ask for its processor time.
func cpu() int64 { return int64(time.Since(began)) }
