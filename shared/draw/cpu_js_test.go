//go:build js

package draw

import "syscall/js"

// cpu is the processor time of node's process.
func cpu() int64 {
	u := js.Global().Get("process").Call("cpuUsage")
	return int64(1000 * (u.Get("user").Float() + u.Get("system").Float()))
}
