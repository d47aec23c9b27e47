// Package examples holds workloads to begin with. The agent offers them on its
// page, one click away; on a command line they are plain files:
// tideline run examples/demo.yaml. The first line of each says what it shows.
package examples

import "embed"

// Files are the examples by name.
//
//go:embed *.yaml
var Files embed.FS
