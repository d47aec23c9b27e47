package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

// Scope is an open tf.device.
type Scope struct {
	rt   *Runtime
	text string
	name device.Name
}

// Enter opens a device scope: what tf.device takes, such as "/GPU:0", "cpu",
// "/device:GPU:1". It is merged over the enclosing scope, and the outermost
// over /CPU:0. ValueError: the text makes no sense.
func (rt *Runtime) Enter(text string) (*Scope, error) {
	base := device.Local("CPU", 0)
	if s := rt.scope(); s != nil {
		base = s.name
	}
	n, err := base.Enter(text)
	if err != nil {
		return nil, err
	}
	rt.warnInherited(text, base, n)
	s := &Scope{rt, text, n}
	rt.scopes = append(rt.scopes, s)
	return s, nil
}

// warnInherited warns, once for each scope, of a number that a scope of another
// type takes over from the one around it: hardly anybody means "/CPU" within
// "/GPU:1" to be /CPU:1.
func (rt *Runtime) warnInherited(text string, outer, n device.Name) {
	in, err := device.ParseScope(text)
	if err != nil || in.Type == "" || in.Type == outer.Type || in.ID != device.Unset || n.ID <= 0 {
		return
	}
	w := fmt.Sprintf("the scope %q within %s means %s: the number is that of the scope around it, and such a device rarely exists. Write /%s:0", text, outer.Short(), n.Short(), in.Type)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case slices.Contains(rt.warnings, w):
	case rt.run == nil:
		rt.warnings = append(rt.warnings, w)
	default:
		rt.warn(w)
	}
}

// EnterNone opens a scope that asks for nothing, whatever encloses it.
func (rt *Runtime) EnterNone() *Scope {
	s := &Scope{rt, "None", device.Anywhere}
	rt.scopes = append(rt.scopes, s)
	return s
}

// Leave closes the scope. RuntimeError: it is not the innermost one.
func (s *Scope) Leave() error {
	if inner := s.rt.scope(); inner != s {
		name := "none is open"
		if inner != nil {
			name = "the innermost is " + strconv.Quote(inner.text)
		}
		return &Error{Kind: device.RuntimeError, Device: strconv.Quote(s.text), Setting: "device scope", Message: "scopes must be left in reverse order: " + name}
	}
	s.rt.scopes = s.rt.scopes[:len(s.rt.scopes)-1]
	return nil
}

func (rt *Runtime) scope() *Scope {
	if n := len(rt.scopes); n > 0 {
		return rt.scopes[n-1]
	}
	return nil
}

// On calls f within a device scope.
func (rt *Runtime) On(text string, f func() error) error {
	s, err := rt.Enter(text)
	if err != nil {
		return err
	}
	err = f()
	if leave := s.Leave(); err == nil {
		err = leave
	}
	return err
}

// request is what the innermost scope asks for, Anywhere without one.
func (rt *Runtime) request() device.Name {
	if s := rt.scope(); s != nil {
		return s.name
	}
	return device.Anywhere
}

// creationDevice is where a tensor made from the host's numbers goes: the
// scope's device, which must exist, or the first of all.
func (rt *Runtime) creationDevice(op string) (event.DeviceID, error) {
	want := rt.request()
	if want == device.Anywhere {
		return rt.order[0], nil
	}
	for _, d := range rt.order {
		if want.Matches(rt.devices[d].Name) {
			return d, nil
		}
	}
	return 0, &Error{
		Kind: device.RuntimeError, Op: op, Device: want.String(), Cause: device.ErrUnknown,
		Message: "unknown device; there are " + rt.deviceNames(),
	}
}

func (c *core) deviceNames() string {
	names := make([]string, len(c.devices))
	for i, l := range c.devices {
		names[i] = l.Name.String()
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// place is TensorFlow's choice of a device for an eager op: where its resource
// lives; else the first that was asked for and has a kernel; else, with soft
// placement, the first with a kernel at all.
func (c *core) place(p *program.Program, n *program.Node, want device.Name, resource *event.DeviceID, in []*handle) (event.DeviceID, string, error) {
	def, err := program.Lookup(n.Op)
	if err != nil {
		return 0, "", &Error{Kind: device.NotFound, Op: string(n.Op), Message: "no kernel is registered for it"}
	}
	has := func(d event.DeviceID) bool { return !def.CPUOnly || c.devices[d].IsHost() }
	if resource != nil {
		if !has(*resource) {
			return 0, "", &Error{
				Kind: device.NotFound, Op: string(n.Op), Device: c.devices[*resource].Name.String(),
				Message: "its variable is there, but it has a kernel for CPU only: put the variable on a CPU",
			}
		}
		return *resource, "with its variable", nil
	}
	if c.o.PinSmallIntegers && c.smallIntegers(n.Op, in) {
		return 0, "small integers on the host stay there", nil
	}
	for _, d := range c.order {
		if want.Matches(c.devices[d].Name) && has(d) {
			return d, reason(want), nil
		}
	}
	if !c.config.SoftPlacement(false) {
		kernels := "CPU, GPU"
		if def.CPUOnly {
			kernels = "CPU"
		}
		return 0, "", &Error{
			Kind: device.InvalidArgument, Op: string(n.Op), Device: want.String(),
			Message: fmt.Sprintf("could not satisfy the device: kernels of %s: %s; devices: %s. Soft placement would run it elsewhere", n.Op, kernels, c.deviceNames()),
		}
	}
	loose := want
	loose.Type, loose.ID = "", device.Unset
	for _, d := range c.order {
		if loose.Matches(c.devices[d].Name) && has(d) {
			return d, "asked for on " + want.Short() + ", which has no such device or kernel: soft placement", nil
		}
	}
	return 0, "", &Error{Kind: device.InvalidArgument, Op: string(n.Op), Device: want.String(), Message: "no device matches; there are " + c.deviceNames()}
}

func reason(want device.Name) string {
	if want == device.Anywhere {
		return "default order"
	}
	return "asked for"
}

const smallElements = 64

// smallIntegers says whether an op is one that small integer pinning keeps on
// the host.
func (c *core) smallIntegers(op program.Op, in []*handle) bool {
	if len(in) == 0 || op == program.OpRandomUniform {
		return false
	}
	for _, h := range in {
		if !c.devices[h.device].IsHost() || h.dtype != program.Int32 && h.dtype != program.Int64 || h.shape.Elements() > smallElements {
			return false
		}
	}
	return true
}
