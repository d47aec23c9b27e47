package exec

import "tideline/protocol/event"

// withoutWorkspace is by how much an algorithm that needs no workspace is
// slower; assumed.
const withoutWorkspace = 2

// defaultWorkspaceLimit is TensorFlow's, in bytes.
const defaultWorkspaceLimit = 4 << 30

func (c *Config) workspaceLimit() int64 {
	if c.WorkspaceLimit > 0 {
		return c.WorkspaceLimit
	}
	return defaultWorkspaceLimit
}

// The workspaces of the algorithms that are tried, as multiples of that of the
// one that will be taken; assumed.
var algorithms = [...]int64{4, 2, 1}

// tune tries the algorithms of a kernel on its real inputs and outputs. What
// there is no memory for is not tried.
func (r *Runtime) tune(n *node, in []bufferID) bool {
	n.tuned = true
	k := &n.kernel
	for _, times := range algorithms {
		bytes := n.workspace * times
		if bytes > r.cfg.workspaceLimit() {
			continue
		}
		work, ok := r.allocate(&request{
			bytes: bytes, op: n.name, tensor: n.workName, space: r.memory[n.device], category: event.Temporary, noRetry: true,
		})
		if !ok {
			continue
		}
		k.Workspace = r.ref(work)
		r.await(k.Device, in)
		span, err := r.backend.Launch(k)
		r.drop(work)
		k.Workspace = Ref{}
		if err != nil {
			r.fail(err)
			return false
		}
		r.tellOp(n, span)
	}
	return r.failed == nil
}
