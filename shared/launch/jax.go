package launch

import (
	"cmp"
	"math"

	"tideline/protocol/api"
	"tideline/shared/device"
	"tideline/shared/device/jax"
)

// asJAX is the workload with its GPUs set as JAX would set them, where the
// workload has a variable of JAX's. What an entry says by itself stays.
func (h *hardware) asJAX(w *api.Workload, m *device.Machine) (*api.Workload, error) {
	c, err := jax.Read(w.Variable)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the variable
	}
	if !c.Explicit {
		return w, nil
	}
	h.jax = true
	h.collect = false // nothing switches it on there
	w = w.Clone()
	for i := range w.Devices {
		d := &w.Devices[i]
		if d.Type() != "GPU" || d.Hidden {
			continue
		}
		if cmp.Or(d.Allocator, bfcKind) == bfcKind && len(d.AllocatorOptions) == 0 {
			d.Allocator = c.Kind
		}
		if p, ok := m.Find(d.Preset); ok && d.MemoryLimit > 0 && c.Growth {
			// Its client takes a limit in bytes with growth, which TensorFlow has
			// as a part alone.
			d.Fraction, d.MemoryLimit = partOf(d.MemoryLimit, p.Total.Value), 0
		}
		if d.MemoryLimit > 0 || len(d.Logical) > 0 {
			continue
		}
		d.Growth = d.Growth || c.Growth
		if d.Fraction == 0 && d.Allocator != "direct" { // which the driver alone bounds
			d.Fraction = c.Part
		}
	}
	return w, nil
}

// partOf is the part of a total that comes to so many whole bytes.
func partOf(limit, total int64) float64 {
	f := float64(limit) / float64(total)
	if int64(f*float64(total)) < limit { // the product is cut
		f = math.Nextafter(f, 2)
	}
	return f
}

// checkJAX finds variables of JAX's that it, or the model, cannot take.
func checkJAX(w *api.Workload) (out api.Problems) {
	c, err := jax.Read(w.Variable)
	if err != nil {
		return api.Problems{{Path: "env", Message: err.Error()}}
	}
	if !c.Explicit {
		return nil
	}
	for _, name := range []string{"TF_FORCE_GPU_ALLOW_GROWTH", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_ENABLE_GPU_GARBAGE_COLLECTION"} {
		if _, set := w.Variable(name); set {
			out = append(out, api.Problem{Path: "env", Message: name + " is read by TensorFlow alone, the variables that begin with XLA_ by JAX: a run is one of the two"})
		}
	}
	return out
}
